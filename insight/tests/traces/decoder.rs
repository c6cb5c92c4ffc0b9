//! A reader of Perfetto's format.

use std::collections::HashMap;

use fibra_insight::Trace;

/// A value of a field.
#[derive(Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn number(&self) -> u64 {
        match self {
            Value::Number(number) => *number,
            Value::Bytes(_) => panic!("no number: {self:?}"),
        }
    }

    fn bytes(&self) -> &'a [u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Number(_) => panic!("no bytes: {self:?}"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("a text")
    }

    fn message(&self) -> HashMap<u64, Value<'a>> {
        fields(self.bytes()).collect()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("the number ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let key = varint(&mut bytes);
        let mut take = |length| bytes.split_off(..length).expect("the field ends");
        let value = match key & 7 {
            1 => Value::Number(u64::from_le_bytes(take(8).try_into().expect("8 bytes"))),
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                Value::Bytes(bytes.split_off(..length).expect("the field ends"))
            }
            kind => panic!("no such kind of field: {kind}"),
        };
        Some((key >> 3, value))
    })
}

/// A packet of a trace.
#[derive(Default, Debug)]
pub(crate) struct Point {
    pub(crate) at: u64,
    pub(crate) kind: u64,
    pub(crate) track: u64,
    pub(crate) name: String,
    pub(crate) flow_from: Option<u64>,
    pub(crate) flow_to: Option<u64>,
}

pub(crate) const BEGIN: u64 = 1;
pub(crate) const END: u64 = 2;
pub(crate) const INSTANT: u64 = 3;

/// A trace as a viewer reads it.
#[derive(Default, Debug)]
pub(crate) struct Decoded {
    /// The name and the parent of each track.
    pub(crate) tracks: HashMap<u64, (String, Option<u64>)>,
    pub(crate) points: Vec<Point>,
}

impl Decoded {
    /// Writes a trace and reads it, and checks what holds for all: tracks are described before they are used, times do not go
    /// back, slices are balanced, each flow begins before it ends and has one end at the most.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut bytes = Vec::new();
        trace.write_perfetto(&mut bytes).expect("memory takes all");
        let mut decoded = Decoded::default();
        for (field, packet) in fields(&bytes) {
            assert_eq!(field, 1, "a trace has packets only");
            let packet = packet.message();
            assert_eq!(packet[&10].number(), 1);
            if let Some(track) = packet.get(&60) {
                decoded.describe(&track.message());
            }
            if let Some(event) = packet.get(&11) {
                decoded.point(packet[&8].number(), &event.message());
            }
        }
        decoded.check();
        decoded
    }

    fn describe(&mut self, track: &HashMap<u64, Value<'_>>) {
        let name = track.get(&2).map_or(String::new(), Value::text);
        let parent = track.get(&5).map(Value::number);
        assert!(
            parent.is_none_or(|parent| self.tracks.contains_key(&parent)),
            "{name} has an unknown parent"
        );
        let [thread, process] = [4, 3].map(|field| track.get(&field).map(Value::message));
        if let Some(process) = &process {
            let program = std::env::current_exe().expect("its path");
            assert!(program.ends_with(process[&6].text()), "{process:?} is not named as the program");
        }
        for ids in [thread, process].iter().flatten() {
            assert_eq!(ids[&1].number(), u64::from(std::process::id()));
        }
        let former = self.tracks.insert(track[&1].number(), (name, parent));
        assert_eq!(former, None, "numbers are unique");
    }

    fn point(&mut self, at: u64, event: &HashMap<u64, Value<'_>>) {
        let number = |field| event.get(&field).map(Value::number);
        self.points.push(Point {
            at,
            kind: event[&9].number(),
            track: event[&11].number(),
            name: event.get(&23).map_or(String::new(), Value::text),
            flow_from: number(47),
            flow_to: number(48),
        });
    }

    fn check(&self) {
        let (mut open, mut flows, mut last) = (HashMap::new(), HashMap::new(), 0);
        for point in &self.points {
            assert!(self.tracks.contains_key(&point.track), "{point:?} is on no track");
            assert!(point.at >= last, "{point:?} comes after {last}");
            last = point.at;
            let open: &mut i32 = open.entry(point.track).or_default();
            match point.kind {
                BEGIN => *open += 1,
                END => *open -= 1,
                kind => assert_eq!(kind, INSTANT),
            }
            assert!(*open >= 0, "{point:?} ends what has not begun");
            assert_eq!(point.name.is_empty(), point.kind == END);
            if let Some(flow) = point.flow_from {
                assert_eq!(flows.insert(flow, false), None, "{point:?} begins a flow again");
            }
            if let Some(flow) = point.flow_to {
                assert_eq!(flows.insert(flow, true), Some(false), "{point:?} ends no flow");
            }
        }
        assert!(open.values().all(|open| *open == 0), "slices are left open");
    }

    /// Returns the track of that name under a parent of that name.
    pub(crate) fn track(&self, parent: &str, name: &str) -> u64 {
        let is_it = |(_, (own, of)): &(&u64, &(String, Option<u64>))| {
            own == name && of.is_some_and(|of| self.tracks[&of].0 == parent)
        };
        *self.tracks.iter().find(is_it).unwrap_or_else(|| panic!("no {name} in {:?}", self.tracks)).0
    }

    /// Returns what is on a track: the names where slices begin and at instants, and nothing at ends.
    pub(crate) fn names(&self, track: u64) -> Vec<&str> {
        self.points.iter().filter(|point| point.track == track).map(|point| point.name.as_str()).collect()
    }

    /// Returns the begin and the end of each flow that has both.
    pub(crate) fn flows(&self) -> Vec<(&Point, &Point)> {
        let ends = self.points.iter().filter(|point| point.flow_to.is_some());
        let begin = |end: &Point| self.points.iter().find(|point| point.flow_from == end.flow_to);
        ends.map(|end| (begin(end).expect("it was checked"), end)).collect()
    }
}
