//! A client of PostgreSQL: tokio-postgres over a fibra socket. One task drives the connection, other tasks
//! send queries.
//!
//! Run `cargo run --features store-examples --example postgres --
//! postgresql://user:password@127.0.0.1:5432/database`, with the values of your server, or set the
//! environment variable `DATABASE_URL`. You see the rows that several tasks have written into a temporary
//! table.

use fibra::compat::Async;
use fibra::net::TcpStream;
use std::env;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

/// The number of writing tasks, and of rows of each.
const WRITERS: i64 = 8;
const ROWS: i64 = 100;
/// The time limit of the program.
const PATIENCE: Duration = Duration::from_secs(30);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let url = env::args().nth(1).or_else(|| env::var("DATABASE_URL").ok());
    let url = url.unwrap_or_else(|| "postgresql://postgres@127.0.0.1:5432/postgres".to_owned());
    fibra::run(|| fibra::timeout(PATIENCE, || talk(&url.parse()?))?)
}

fn talk(config: &Config) -> Outcome<()> {
    let stream = connect(config)?;
    let (client, connection) = fibra::block_on(config.connect_raw(Async::new(stream), NoTls))?;
    // It ends when the last handle of the client is dropped.
    let connection = fibra::spawn(move || fibra::block_on(connection));
    let create = "CREATE TEMPORARY TABLE fibra (writer bigint, row bigint, PRIMARY KEY (writer, row))";
    fibra::block_on(client.batch_execute(create))?;

    let client = Arc::new(client);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let client = Arc::clone(&client);
            fibra::spawn(move || write(&client, writer))
        })
        .collect();
    for writer in writers {
        writer.join()??;
    }
    let row = fibra::block_on(client.query_one("SELECT count(*), count(DISTINCT writer) FROM fibra", &[]))?;
    println!("{} rows of {} writers", row.get::<_, i64>(0), row.get::<_, i64>(1));

    // A refused statement is an error. The connection stays usable.
    match write(&client, 0) {
        Ok(()) => println!("the same rows twice"),
        Err(error) => println!("refused: {}", error.as_db_error().map_or("", |error| error.message())),
    }
    let row = fibra::block_on(client.query_one("SELECT current_setting('server_version')", &[]))?;
    println!("by PostgreSQL {}", row.get::<_, &str>(0));
    drop(client);
    Ok(connection.join()??)
}

/// Writes rows, one after the other. The statements of all tasks share the connection.
fn write(client: &Client, writer: i64) -> Result<(), tokio_postgres::Error> {
    let insert = fibra::block_on(client.prepare("INSERT INTO fibra VALUES ($1, $2)"))?;
    for row in 0..ROWS {
        fibra::block_on(client.execute(&insert, &[&writer, &row]))?;
    }
    Ok(())
}

fn connect(config: &Config) -> Outcome<TcpStream> {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts() {
        [Host::Tcp(host), ..] => {
            let stream = TcpStream::connect((host.as_str(), port))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        }
        _ => Err("the url names no host".into()),
    }
}
