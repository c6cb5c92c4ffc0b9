//! Profiles in the format of pprof: <https://github.com/google/pprof/blob/main/proto/profile.proto>.

#![forbid(unsafe_code)]

use std::time::SystemTime;

use crate::interner::Interner;
use crate::profile::{Place, Profile, Weight};
use crate::protobuf::Message;

/// The fields of a `Profile`.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING: u32 = 6;
    pub(super) const TIME: u32 = 9;
    pub(super) const DURATION: u32 = 10;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// The parts of a profile that others name by their numbers.
#[derive(Default)]
struct Tables {
    strings: Interner<String>,
    /// Names and files.
    functions: Interner<(usize, usize)>,
    /// Functions and lines.
    locations: Interner<(usize, u32)>,
}

impl Profile {
    /// Returns the profile in the format of pprof, for `go tool pprof` and all that read what it reads.
    ///
    /// Samples have two values, their number and their time in nanoseconds, and the labels `task`, `state` and `waits_for`.
    /// The outermost frame is the name of the task, or the place where it was spawned.
    ///
    /// # Examples
    /// ```
    /// # use fibra_runtime as fibra;
    /// use std::time::Duration;
    ///
    /// let runtime = fibra::Runtime::builder().workers(1).build()?;
    /// runtime.handle().run(|| fibra::spawn(fibra::task::park));
    /// let profile = fibra_insight::profile(&runtime.handle(), Duration::from_millis(50)).to_pprof();
    /// // The first field is a message: the type of the first value.
    /// assert_eq!(profile[0], 1 << 3 | 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn to_pprof(&self) -> Vec<u8> {
        let (mut message, mut tables) = (Message::default(), Tables::default());
        tables.string("");
        for (name, unit) in [("samples", "count"), ("wall", "nanoseconds")] {
            tables.value_type(&mut message, field::SAMPLE_TYPE, name, unit);
        }
        for (place, weight) in &self.samples {
            self.write_sample(&mut message, &mut tables, place, weight);
        }
        let since = self.begin.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        message.number(field::TIME, since.as_nanos() as u64);
        message.number(field::DURATION, self.duration.as_nanos() as u64);
        tables.value_type(&mut message, field::PERIOD_TYPE, "wall", "nanoseconds");
        message.number(field::PERIOD, self.period.as_nanos() as u64);
        message.number(field::DEFAULT_SAMPLE_TYPE, tables.string("wall"));
        tables.write(&mut message);
        message.as_bytes().to_vec()
    }

    fn write_sample(&self, message: &mut Message, tables: &mut Tables, place: &Place, weight: &Weight) {
        let task = &self.tasks[place.task];
        let functions = self.functions(place);
        let mut locations: Vec<u64> = functions
            .iter()
            .map(|symbol| {
                let file = symbol.file.as_deref().unwrap_or_default();
                tables.location(&symbol.function, file, symbol.line.unwrap_or(0))
            })
            .collect();
        locations.push(tables.location(task, "", 0));
        let labels =
            [("task", task.as_str()), ("state", place.state.name()), ("waits_for", &self.waits[place.wait])];
        let labels = labels.map(|(key, value)| (tables.string(key), tables.string(value)));
        message.message(field::SAMPLE, |sample| {
            sample.message(1, |list| locations.iter().for_each(|location| _ = list.varint(*location)));
            sample.message(2, |list| _ = list.varint(weight.count).varint(weight.time.as_nanos() as u64));
            for (key, value) in labels.iter().filter(|(_, value)| *value > 0) {
                sample.message(3, |label| _ = label.number(1, *key).number(2, *value));
            }
        });
    }
}

impl Tables {
    fn string(&mut self, text: &str) -> u64 {
        self.strings.number(text.into()) as u64
    }

    /// Returns the number of a line in a function. These numbers begin at 1, as those of functions do.
    fn location(&mut self, function: &str, file: &str, line: u32) -> u64 {
        let names = (self.strings.number(function.into()), self.strings.number(file.into()));
        let function = self.functions.number(names);
        self.locations.number((function, line)) as u64 + 1
    }

    fn value_type(&mut self, message: &mut Message, field: u32, name: &str, unit: &str) {
        let (name, unit) = (self.string(name), self.string(unit));
        message.message(field, |value_type| _ = value_type.number(1, name).number(2, unit));
    }

    fn write(&self, message: &mut Message) {
        for (index, (function, line)) in self.locations.values().iter().enumerate() {
            message.message(field::LOCATION, |location| {
                location.number(1, index as u64 + 1);
                location.message(4, |place| {
                    _ = place.number(1, *function as u64 + 1).number(2, u64::from(*line))
                });
            });
        }
        for (index, (name, file)) in self.functions.values().iter().enumerate() {
            message.message(field::FUNCTION, |function| {
                function.number(1, index as u64 + 1).number(2, *name as u64).number(3, *name as u64);
                function.number(4, *file as u64);
            });
        }
        for text in self.strings.values() {
            message.string(field::STRING, text);
        }
    }
}
