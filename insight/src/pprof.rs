//! Profiles in the format of pprof: <https://github.com/google/pprof/blob/main/proto/profile.proto>.

#![forbid(unsafe_code)]

use std::env;
use std::time::{Duration, SystemTime};

use fibra_runtime::stacks::Symbol;

use crate::interner::Interner;
use crate::profile::{Place, Profile};
use crate::protobuf::Message;

/// The parts of a profile that others name by their numbers.
#[derive(Default)]
struct Tables {
    strings: Interner<String>,
    /// The name of a function, its file, and a line. Each is a function of its own: readers merge those that are equal.
    locations: Interner<(u64, u64, u32)>,
}

impl Profile {
    /// Returns the profile in the format of pprof, for `go tool pprof` and all that read what it reads.
    ///
    /// Samples have a value, their time in nanoseconds, and the labels `task`, `state` and `waits_for`.
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
        // String 0 is empty.
        tables.string("");
        let (wall, nanoseconds) = (tables.string("wall"), tables.string("nanoseconds"));
        // The types of values: those of samples (field 1), and that of the period (field 11).
        for field in [1, 11] {
            message.message(field, |value_type| _ = value_type.number(1, wall).number(2, nanoseconds));
        }
        // The program (field 3). It has functions, files and lines, so that no reader looks for those.
        let program = tables.string(&env::current_exe().unwrap_or_default().to_string_lossy());
        message.message(3, |mapping| {
            mapping.number(1, 1).number(5, program).number(7, 1).number(8, 1).number(9, 1);
        });
        for (place, time) in &self.samples {
            self.write_sample(&mut message, &mut tables, place, *time);
        }
        let since = self.begin.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // The time of its begin, its duration, and its period.
        for (field, time) in [(9, since), (10, self.duration), (12, self.period)] {
            message.number(field, time.as_nanos() as u64);
        }
        tables.write(&mut message);
        message.as_bytes().to_vec()
    }

    /// Writes a sample (field 2).
    fn write_sample(&self, message: &mut Message, tables: &mut Tables, place: &Place, time: Duration) {
        let task = self.tasks.value(place.task);
        let mut location = |symbol: &Symbol| {
            let file = symbol.file.as_deref().unwrap_or_default();
            tables.location(&symbol.function, file, symbol.line.unwrap_or(0))
        };
        let mut locations: Vec<_> = self.functions(place).into_iter().map(&mut location).collect();
        locations.push(tables.location(task, "", 0));
        let labels = [
            ("task", task.as_str()),
            ("state", place.state.name()),
            ("waits_for", self.waits.value(place.wait).as_str()),
        ];
        let labels = labels.map(|(key, value)| (tables.string(key), tables.string(value)));
        message.message(2, |sample| {
            sample.message(1, |list| locations.iter().for_each(|location| _ = list.varint(*location)));
            sample.message(2, |list| _ = list.varint(time.as_nanos() as u64));
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

    /// Returns the number of a line in a function. These numbers begin at 1.
    fn location(&mut self, function: &str, file: &str, line: u32) -> u64 {
        let location = (self.string(function), self.string(file), line);
        self.locations.number(location) as u64 + 1
    }

    /// Writes the locations (field 4), their functions (field 5) and the strings (field 6).
    fn write(&self, message: &mut Message) {
        for (id, (name, file, line)) in (1..).zip(self.locations.values()) {
            message.message(4, |location| {
                location.number(1, id).number(2, 1);
                location.message(4, |place| _ = place.number(1, id).number(2, (*line).into()));
            });
            message.message(5, |function| {
                // No name of the system (field 3): pprof cuts those that are equal to `name` at `<` and `(`.
                _ = function.number(1, id).number(2, *name).number(4, *file);
            });
        }
        self.strings.values().iter().for_each(|text| _ = message.string(6, text));
    }
}
