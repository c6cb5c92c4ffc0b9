//! What the program said at one moment.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use fibra_tools::printable::printable;
use serde_json::Value;

use crate::Result;
use crate::endpoint::Endpoint;

/// What the program said at one moment.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sample {
    pub(crate) process: u64,
    /// The numbers, by name and label as in `fibra_tasks{state="ready"}`.
    pub(crate) numbers: BTreeMap<String, f64>,
    pub(crate) tasks: Vec<Task>,
}

/// A task. Times are in seconds.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Task {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) age: f64,
    pub(crate) wait: Option<Wait>,
}

/// What a task waits for.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Wait {
    pub(crate) kind: String,
    pub(crate) object: String,
    pub(crate) owner: Option<u64>,
    pub(crate) waited: f64,
    /// Kind, descriptor, peer and the rest of the time, as a text.
    pub(crate) text: String,
}

impl Sample {
    /// Asks the program.
    pub(crate) fn take(endpoint: &Endpoint) -> Result<Self> {
        let numbers = numbers(&endpoint.get("/metrics")?)?;
        let (process, tasks) = tasks(&endpoint.get("/tasks?format=json")?)?;
        Ok(Sample { process, numbers, tasks })
    }

    pub(crate) fn number(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(0.0)
    }

    /// Returns the number of one worker.
    pub(crate) fn of_worker(&self, name: &str, worker: usize) -> f64 {
        self.number(&format!("fibra_worker_{name}{{worker=\"{worker}\"}}"))
    }

    pub(crate) fn workers(&self) -> usize {
        self.numbers.keys().filter(|name| name.starts_with("fibra_worker_runs_total{")).count()
    }
}

/// Parses numbers in the text format of Prometheus.
fn numbers(page: &str) -> Result<BTreeMap<String, f64>> {
    let number = |line: &str| {
        line.rsplit_once(' ').and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
    };
    let parse =
        |line| number(line).ok_or_else(|| format!("the answer to /metrics has no number in {line:?}"));
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let numbers = lines.map(parse).collect::<Result<BTreeMap<_, _>>>()?;
    let is_of_fibra = numbers.contains_key("fibra_uptime_seconds");
    is_of_fibra.then_some(numbers).ok_or_else(|| "the answer to /metrics has no numbers of fibra".to_owned())
}

/// Parses a thread dump. Returns the number of the process, and its tasks.
fn tasks(json: &str) -> Result<(u64, Vec<Task>)> {
    let nonsense = || "the answer to /tasks is no dump of fibra".to_owned();
    let dump: Value = serde_json::from_str(json).map_err(|error| format!("{}: {error}", nonsense()))?;
    let dump = &dump["threadDump"];
    let containers = dump["threadContainers"].as_array().ok_or_else(nonsense)?;
    let threads = containers.iter().flat_map(|container| container["threads"].as_array()).flatten();
    let tasks: Option<_> = threads.map(task).collect();
    dump["processId"].as_u64().zip(tasks).ok_or_else(nonsense)
}

fn task(json: &Value) -> Option<Task> {
    let name = json["name"].as_str().filter(|name| !name.is_empty()).or(json["spawnedAt"].as_str());
    Some(Task {
        id: json["tid"].as_u64()?,
        name: printable(name.unwrap_or("?")),
        state: printable(json["taskState"].as_str()?),
        age: json["age"].as_f64()?,
        wait: if json["waitsFor"].is_null() { None } else { Some(wait(&json["waitsFor"])?) },
    })
}

fn wait(json: &Value) -> Option<Wait> {
    let kind = printable(json["kind"].as_str()?);
    let descriptor = json["descriptor"].as_i64().map(|descriptor| format!(" {descriptor}"));
    let words =
        ["peer", "direction"].map(|name| json[name].as_str().map(|word| format!(" {}", printable(word))));
    let owner = json["owner"].as_u64();
    let of_owner = owner.map(|owner| format!(" of {owner}"));
    let left = json["remaining"].as_f64().map(|left| format!(", {left:.1} s left"));
    let arms =
        json["arms"].as_array()?.iter().map(|arm| Some(wait(arm)?.text)).collect::<Option<Vec<_>>>()?;
    let arms = (!arms.is_empty()).then(|| format!(" ({})", arms.join(", ")));
    let parts = [descriptor].into_iter().chain(words).chain([of_owner, arms, left]);
    Some(Wait {
        text: kind.clone() + &parts.flatten().collect::<String>(),
        object: printable(json["object"].as_str()?),
        waited: json["waited"].as_f64()?,
        kind,
        owner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_and_nonsense_is_named() {
        let page = "# HELP a b\nfibra_uptime_seconds 2.5\nfibra_worker_runs_total{worker=\"0\"} 7\n";
        let sample = Sample { numbers: numbers(page).unwrap(), ..Sample::default() };
        assert_eq!((sample.workers(), sample.of_worker("runs_total", 0)), (1, 7.0));
        assert_eq!(numbers("up 1\n").unwrap_err(), "the answer to /metrics has no numbers of fibra");
        assert_eq!(numbers("<html>\n").unwrap_err(), "the answer to /metrics has no number in \"<html>\"");
    }

    #[test]
    fn a_dump_is_parsed_with_its_waits() {
        let json = r#"{"threadDump":{"processId":9,"threadContainers":[{"threads":[
            {"tid":4,"name":"","spawnedAt":"a.rs:1:2","taskState":"suspended","age":1.5,"waitsFor":
                {"kind":"descriptor","object":"0x10","owner":null,"descriptor":17,"peer":"10.0.0.7:5432",
                 "direction":"readable","waited":0.50,"remaining":2.0,"arms":[]}},
            {"tid":5,"name":"b","taskState":"running","age":0.0}]}]}}"#;
        let (process, tasks) = tasks(json).unwrap();
        let wait = tasks[0].wait.as_ref().unwrap();
        assert_eq!(wait.text, "descriptor 17 10.0.0.7:5432 readable, 2.0 s left");
        assert_eq!((process, tasks[0].name.as_str(), tasks[0].age), (9, "a.rs:1:2", 1.5));
        assert_eq!((tasks[1].name.as_str(), &tasks[1].wait), ("b", &None));
    }

    #[test]
    fn names_have_no_control_characters() {
        let json = r#"{"threadDump":{"processId":9,"threadContainers":[{"threads":[
            {"tid":5,"name":"b\u001b[2J\n","taskState":"running","age":0.0}]}]}}"#;
        assert_eq!(tasks(json).unwrap().1[0].name, r"b\u{1b}[2J\n");
    }

    #[test]
    fn what_is_no_dump_is_an_error() {
        for json in ["{}", "[]", r#"{"threadDump":{"processId":1,"threadContainers":[{"threads":[{}]}]}}"#] {
            assert_eq!(tasks(json).unwrap_err(), "the answer to /tasks is no dump of fibra");
        }
        assert!(tasks("nonsense").unwrap_err().starts_with("the answer to /tasks is no dump of fibra: "));
    }
}
