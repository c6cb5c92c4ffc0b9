//! fibra's echo server with tasks that may be resumed on any worker; otherwise it is the example
//! `echo_server`.

use std::io;

use fibra::net::TcpListener;
use fibra::task;

use crate::rival::echo::echo;
use crate::rival::{Service, greet};

pub(super) const SERVICE: Service = Service { name: "echo_migratable", serve };

fn serve(address: &str) -> io::Result<()> {
    fibra::run(|| {
        let listener = TcpListener::bind(address)?;
        greet(listener.local_addr()?)?;
        loop {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            // SAFETY: it keeps nothing that is tied to its thread over a suspension.
            unsafe { task::Builder::new().migratable() }.spawn(move || echo(stream));
        }
    })
}
