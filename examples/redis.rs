//! A client of Redis: the crate `redis` packs commands and parses answers, and a fibra socket carries them.
//!
//! Run `redis-server`, or `cargo run --example resp_server`, then in another terminal `cargo run --features
//! store-examples --example redis -- 127.0.0.1:6379` (the default address). You see a few commands, sent
//! together, with their answers, and the count that several tasks made in one key.

use fibra::net::TcpStream;
use redis::{Parser, Pipeline, RedisResult, Value};
use std::error::Error;
use std::io::Write;
use std::time::Duration;

const COUNTERS: usize = 8;
/// The increments of each task.
const ROUNDS: usize = 1000;
/// The time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:6379".to_owned());
    fibra::run(|| {
        let mut client = Client::connect(&address)?;
        // Unique names, in case other clients use the server.
        let [greeting, count] =
            ["greeting", "count"].map(|name| format!("fibra:{}:{name}", std::process::id()));
        let commands: [&[&str]; 6] = [
            &["PING"],
            &["SET", &greeting, "hello", "EX", "60"],
            &["GET", &greeting],
            &["TTL", &greeting],
            &["INCR", &greeting],
            &["DEL", &greeting, &count],
        ];
        for (command, answer) in commands.iter().zip(client.ask(&pack(&commands))?) {
            println!("{}: {answer:?}", command[0]);
        }
        let counters: Vec<_> = (0..COUNTERS)
            .map(|_| {
                let (address, count) = (address.clone(), count.clone());
                fibra::spawn(move || {
                    Client::connect(&address)?.ask(&pack(&[&["INCR", count.as_str()][..]; ROUNDS]))
                })
            })
            .collect();
        for counter in counters {
            counter.join()??;
        }
        let answers = client.ask(&pack(&[&["GET", &count], &["DEL", &count]]))?;
        println!("{COUNTERS} tasks have counted to {}", redis::from_redis_value_ref::<usize>(&answers[0])?);
        Ok(())
    })
}

/// Packs several commands, each a list of words, into one packet.
fn pack(commands: &[&[&str]]) -> Pipeline {
    let mut pipeline = redis::pipe();
    for words in commands {
        pipeline.cmd(words[0]).arg(&words[1..]);
    }
    pipeline
}

struct Client {
    stream: TcpStream,
    /// Keeps received bytes of later answers.
    parser: Parser,
}

impl Client {
    fn connect(address: &str) -> RedisResult<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Client { stream, parser: Parser::new() })
    }

    /// Sends all commands together and reads an answer for each. A failed command has an error as its answer.
    fn ask(&mut self, commands: &Pipeline) -> RedisResult<Vec<Value>> {
        self.stream.write_all(&commands.get_packed_pipeline())?;
        (0..commands.len()).map(|_| self.parser.parse_value(&self.stream)).collect()
    }
}
