//! The commands, with the answers of Redis.

use super::parse::{Request, integer};
use super::reply;
use super::store::Store;
use fibra::time;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// What happens to the connection after a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    Close,
}

/// The result of a command. An error is the text of the answer.
type Outcome = Result<Then, Cow<'static, str>>;

const NO_INTEGER: &str = "value is not an integer or out of range";
const OVERFLOW: &str = "increment or decrement would overflow";
const SYNTAX: &str = "syntax error";
const MANY: usize = usize::MAX;

/// A command: its name, the number of its arguments, and its function.
type Command = (&'static str, RangeInclusive<usize>, fn(&mut Call<'_, '_>) -> Outcome);

/// All commands, the most frequent first.
const COMMANDS: [Command; 22] = [
    ("GET", 1..=1, |call| call.get()),
    ("SET", 2..=MANY, |call| call.set()),
    ("INCR", 1..=1, |call| call.add(Some(1))),
    ("DECR", 1..=1, |call| call.add(Some(-1))),
    ("INCRBY", 2..=2, |call| call.number(1).and_then(|by| call.add(Some(by)))),
    ("DECRBY", 2..=2, |call| call.number(1).and_then(|by| call.add(by.checked_neg()))),
    ("DEL", 1..=MANY, |call| call.count(|store, key| store.write(key).remove(key))),
    ("EXISTS", 1..=MANY, |call| call.count(|store, key| store.read(key).get(key).is_some())),
    ("EXPIRE", 2..=2, |call| call.expire(1000)),
    ("PEXPIRE", 2..=2, |call| call.expire(1)),
    ("TTL", 1..=1, |call| call.remaining(1000)),
    ("PTTL", 1..=1, |call| call.remaining(1)),
    ("PERSIST", 1..=1, |call| call.persist()),
    ("PING", 0..=1, |call| call.ping()),
    ("ECHO", 1..=1, |call| call.ping()),
    ("QUIT", 0..=MANY, |call| call.ok().map(|_| Then::Close)),
    ("SELECT", 1..=1, |call| call.select()),
    // Clients send these at the start of a connection.
    ("HELLO", 0..=MANY, |call| call.hello()),
    ("CLIENT", 1..=MANY, |call| call.client()),
    ("COMMAND", 0..=MANY, |call| call.nothing()),
    ("CONFIG", 1..=MANY, |call| call.config()),
    ("INFO", 0..=MANY, |call| call.info()),
];

/// Answers a request.
pub(crate) fn answer(store: &Store, request: Request<'_>, output: &mut Vec<u8>) -> Then {
    let name = request.argument(0);
    let found = COMMANDS.iter().find(|(known, ..)| name.eq_ignore_ascii_case(known.as_bytes()));
    let outcome = match found {
        Some((_, arity, run)) if arity.contains(&(request.len() - 1)) => {
            run(&mut Call { store, request, output })
        }
        Some((known, ..)) => {
            Err(format!("wrong number of arguments for '{}' command", known.to_ascii_lowercase()).into())
        }
        None => unknown(name),
    };
    outcome.unwrap_or_else(|text| {
        reply::error(output, text);
        Then::GoOn
    })
}

fn unknown(name: &[u8]) -> Outcome {
    // A browser that a web page has sent here: close, since the page controls what follows.
    if name.eq_ignore_ascii_case(b"POST") || name.eq_ignore_ascii_case(b"HOST:") {
        return Ok(Then::Close);
    }
    let shown = &name[..name.len().min(64)];
    Err(format!("unknown command '{}'", shown.escape_ascii()).into())
}

/// A request and the buffer of its answer.
struct Call<'a, 'o> {
    store: &'a Store,
    request: Request<'a>,
    output: &'o mut Vec<u8>,
}

impl<'a> Call<'a, '_> {
    /// Returns an argument by number; 0 is the first after the name.
    fn argument(&self, number: usize) -> &'a [u8] {
        self.request.argument(1 + number)
    }

    fn number(&self, number: usize) -> Result<i64, Cow<'static, str>> {
        integer(self.argument(number)).ok_or(NO_INTEGER.into())
    }

    fn says(&self, number: usize, word: &str) -> bool {
        self.argument(number).eq_ignore_ascii_case(word.as_bytes())
    }

    fn ok(&mut self) -> Outcome {
        reply::simple(self.output, "OK");
        Ok(Then::GoOn)
    }

    fn integer(&mut self, number: i64) -> Outcome {
        reply::integer(self.output, number);
        Ok(Then::GoOn)
    }

    fn nothing(&mut self) -> Outcome {
        reply::array(self.output, 0);
        Ok(Then::GoOn)
    }

    fn get(&mut self) -> Outcome {
        let key = self.argument(0);
        match self.store.read(key).get(key) {
            Some(entry) => reply::bulk(self.output, &entry.value),
            None => reply::nil(self.output),
        }
        Ok(Then::GoOn)
    }

    fn set(&mut self) -> Outcome {
        let (key, value) = (self.argument(0), self.argument(1));
        let (mut deadline, mut only_if) = (None, None);
        let mut at = 2;
        while at < self.request.len() - 1 {
            let unit = [("EX", 1000), ("PX", 1)].into_iter().find(|(name, _)| self.says(at, name));
            match unit {
                Some((_, millis)) if deadline.is_none() && at + 2 < self.request.len() => {
                    let time = self.number(at + 1)?;
                    deadline =
                        Some(after(time, millis).filter(|_| time > 0).ok_or_else(|| self.invalid_time())?);
                    at += 2;
                }
                None if only_if.is_none() && (self.says(at, "NX") || self.says(at, "XX")) => {
                    only_if = Some(self.says(at, "XX"));
                    at += 1;
                }
                _ => return Err(SYNTAX.into()),
            }
        }
        let mut shard = self.store.write(key);
        if only_if.is_some_and(|there| shard.get(key).is_some() != there) {
            reply::nil(self.output);
            return Ok(Then::GoOn);
        }
        shard.set(key, value, deadline);
        drop(shard);
        self.ok()
    }

    /// Adds to the number under the key. A missing key counts as 0.
    fn add(&mut self, by: Option<i64>) -> Outcome {
        let key = self.argument(0);
        let mut shard = self.store.write(key);
        let (old, deadline) = match shard.get(key) {
            Some(entry) => (integer(&entry.value).ok_or(NO_INTEGER)?, entry.deadline),
            None => (0, None),
        };
        let new = by.and_then(|by| old.checked_add(by)).ok_or(OVERFLOW)?;
        shard.set(key, new.to_string().as_bytes(), deadline);
        drop(shard);
        self.integer(new)
    }

    /// Counts the keys that satisfy a condition, each as often as it is named. Unlike in Redis, the keys are
    /// visited one after the other, and changes in between are seen.
    fn count(&mut self, is: fn(&Store, &[u8]) -> bool) -> Outcome {
        let keys = (1..self.request.len()).map(|number| self.request.argument(number));
        let count = keys.filter(|key| is(self.store, key)).count();
        self.integer(count as i64)
    }

    fn expire(&mut self, millis: i64) -> Outcome {
        let (key, time) = (self.argument(0), self.number(1)?);
        let deadline = after(time, millis).ok_or_else(|| self.invalid_time())?;
        let mut shard = self.store.write(key);
        let is_there = shard.get(key).is_some();
        match (is_there, time > 0) {
            (true, true) => shard.expire(key, Some(deadline)),
            (true, false) => _ = shard.remove(key),
            // The sweep removes an expired value.
            (false, _) => {}
        }
        drop(shard);
        self.integer(is_there.into())
    }

    /// Writes the remaining life of a key in units of so many milliseconds, rounded.
    fn remaining(&mut self, millis: i64) -> Outcome {
        let key = self.argument(0);
        let left = match self.store.read(key).get(key).map(|entry| entry.deadline) {
            None => -2,
            Some(None) => -1,
            Some(Some(deadline)) => {
                let left = deadline.saturating_duration_since(time::now()).as_millis() as i64;
                left.saturating_add(millis / 2) / millis
            }
        };
        self.integer(left)
    }

    fn persist(&mut self) -> Outcome {
        let key = self.argument(0);
        let mut shard = self.store.write(key);
        let expires = shard.get(key).is_some_and(|entry| entry.deadline.is_some());
        if expires {
            shard.expire(key, None);
        }
        drop(shard);
        self.integer(expires.into())
    }

    fn invalid_time(&self) -> Cow<'static, str> {
        let name = self.request.argument(0).to_ascii_lowercase();
        format!("invalid expire time in '{}' command", name.escape_ascii()).into()
    }

    fn ping(&mut self) -> Outcome {
        match self.request.len() {
            1 => reply::simple(self.output, "PONG"),
            _ => reply::bulk(self.output, self.argument(0)),
        }
        Ok(Then::GoOn)
    }

    fn select(&mut self) -> Outcome {
        match self.number(0)? {
            0 => self.ok(),
            _ => Err("DB index is out of range".into()),
        }
    }

    fn hello(&mut self) -> Outcome {
        if self.request.len() > 1 && self.number(0).ok() != Some(2) {
            // The only error with a first word of its own.
            self.output.extend_from_slice(b"-NOPROTO unsupported protocol version\r\n");
            return Ok(Then::GoOn);
        }
        if self.request.len() > 2 {
            return Err(SYNTAX.into());
        }
        reply::array(self.output, 10);
        for text in
            ["server", "fibra", "version", env!("CARGO_PKG_VERSION"), "mode", "standalone", "role", "master"]
        {
            reply::bulk(self.output, text.as_bytes());
        }
        reply::bulk(self.output, b"proto");
        self.integer(2)
    }

    fn client(&mut self) -> Outcome {
        match self.says(0, "SETNAME") || self.says(0, "SETINFO") {
            true => self.ok(),
            false => Err("only SETNAME and SETINFO are known of CLIENT, and forgotten".into()),
        }
    }

    /// Answers redis-benchmark, which asks for the settings of persistence: there is none.
    fn config(&mut self) -> Outcome {
        if !self.says(0, "GET") || self.request.len() != 3 {
            return Err("only GET is known of CONFIG, with one name".into());
        }
        let known = [("save", ""), ("appendonly", "no")].into_iter().find(|(name, _)| self.says(1, name));
        let Some((name, value)) = known else { return self.nothing() };
        reply::array(self.output, 2);
        reply::bulk(self.output, name.as_bytes());
        reply::bulk(self.output, value.as_bytes());
        Ok(Then::GoOn)
    }

    fn info(&mut self) -> Outcome {
        let (keys, expires) = self.store.counts();
        let version = env!("CARGO_PKG_VERSION");
        let text = format!(
            "# Server\r\nfibra_version:{version}\r\n# Keyspace\r\ndb0:keys={keys},expires={expires},avg_ttl=0\r\n"
        );
        reply::bulk(self.output, text.as_bytes());
        Ok(Then::GoOn)
    }
}

/// Returns the instant after so many units of milliseconds, and now for a negative number. Returns `None` on
/// overflow.
fn after(time: i64, millis: i64) -> Option<Instant> {
    let millis = time.checked_mul(millis)?;
    time::now().checked_add(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))
}
