//! The load on the servers, in a line for people and in a word for logs.

use super::units;
use crate::options::Options;
use crate::wire::Protocol;

/// Describes the load in one line.
pub(super) fn describe(options: &Options, protocol: Protocol) -> String {
    let Options { connections, idle, size, pipeline, rate, duration, warmup, churn, path, .. } = options;
    let connections = units::count(u64::from(*connections));
    let lanes = match (protocol, churn) {
        (Protocol::Udp, _) => format!("{connections} sockets for datagrams"),
        (_, true) => format!("{connections} connections at a time, each for one request"),
        _ => format!("{connections} connections"),
    };
    let idle = match idle {
        0 => String::new(),
        idle => format!(" beside {} silent ones", units::count(u64::from(*idle))),
    };
    let request = match protocol {
        Protocol::Http => format!("GET {path}"),
        Protocol::Tcp | Protocol::Udp => format!("{size} per request"),
    };
    let batch =
        if *pipeline == 1 { String::new() } else { format!("{pipeline} requests at a time on each, ") };
    let loop_kind = match rate.as_ref().map(|rates| rates.rungs()) {
        Some([rate]) => {
            format!("{} requests per second, each sent when due", units::rate(*rate))
        }
        Some(rungs) => format!("a ladder of {} rates, each request sent when due", rungs.len()),
        None => "each asks again as soon as it is answered".into(),
    };
    let (duration, warmup) = (units::time(*duration), units::time(*warmup));
    format!("{lanes}{idle}, {request}, {batch}{loop_kind}; {duration} measured after {warmup} of warm-up")
}

/// Returns a word that identifies the load, without the server.
pub(super) fn word(options: &Options, protocol: Protocol, asked: Option<f64>) -> String {
    let Options { connections, idle, size, pipeline, churn, path, .. } = options;
    let request = match protocol {
        Protocol::Http => format!("path={path}"),
        Protocol::Tcp | Protocol::Udp => {
            let sizes: Vec<_> =
                size.parts().iter().map(|(size, weight)| format!("{size}:{weight}")).collect();
            format!("size={}", sizes.join("+"))
        }
    };
    let mut word = format!("{protocol}/connections={connections}/{request}/pipeline={pipeline}");
    if *idle > 0 {
        word += &format!("/idle={idle}");
    }
    if *churn {
        word += "/churn";
    }
    if let Some(rate) = asked {
        word += &format!("/rate={rate}");
    }
    word
}
