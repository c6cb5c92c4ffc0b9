//! What the errors say, carry and convert to.

use std::collections::HashSet;
use std::error::Error;
use std::fmt::Debug;
use std::time::Instant;

use crate::channels::{KINDS, LIMITED, make, ms};
use crate::common::everywhere;
use fibra_sync::channel::{
    ReadyTimeoutError, RecvError, RecvTimeoutError, Select, SelectTimeoutError, SendError, SendTimeoutError,
    TryReadyError, TryRecvError, TrySelectError, TrySendError, bounded,
};

/// A value that can neither be shown nor compared.
struct Opaque(u8);

#[test]
fn an_error_says_what_happened() {
    fn differ(errors: &[&dyn Error]) {
        let words: HashSet<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), errors.len(), "{words:?}");
        assert!(words.iter().all(|words| words.len() > 10), "{words:?}");
    }
    let gone = || Opaque(1);
    differ(&[&TrySendError::Full(gone()), &TrySendError::Disconnected(gone())]);
    differ(&[&SendTimeoutError::Timeout(gone()), &SendTimeoutError::Disconnected(gone())]);
    differ(&[&TryRecvError::Empty, &TryRecvError::Disconnected]);
    differ(&[&RecvTimeoutError::Timeout, &RecvTimeoutError::Disconnected]);
    differ(&[&TrySelectError, &SelectTimeoutError]);
    differ(&[&SendError(gone()), &RecvError]);
    assert_eq!(SendError(1).to_string(), TrySendError::Disconnected(1).to_string());
    assert_eq!(RecvError.to_string(), TryRecvError::Disconnected.to_string());
}

#[test]
fn an_error_shows_itself_without_its_value() {
    fn shows(error: impl Debug, what: &str) {
        assert!(format!("{error:?}").contains(what), "{error:?}");
    }
    shows(SendError(Opaque(1)), "SendError");
    shows(TrySendError::Full(Opaque(1)), "Full");
    shows(TrySendError::Disconnected(Opaque(1)), "Disconnected");
    shows(SendTimeoutError::Timeout(Opaque(1)), "");
    shows(RecvError, "RecvError");
    shows(TryRecvError::Empty, "Empty");
    shows(RecvTimeoutError::Timeout, "Timeout");
}

#[test]
fn a_send_s_error_gives_the_value_back() {
    everywhere(|| {
        for kind in KINDS {
            let (sender, receiver) = make(kind);
            drop(receiver);
            assert_eq!(sender.send(Opaque(1)).unwrap_err().into_inner().0, 1);
            assert_eq!(sender.try_send(Opaque(2)).unwrap_err().into_inner().0, 2);
            assert_eq!(sender.send_timeout(Opaque(3), ms(1)).unwrap_err().into_inner().0, 3);
        }
        for capacity in LIMITED {
            let (sender, _receiver) = bounded(capacity);
            (0..capacity).for_each(|_| sender.try_send(Opaque(0)).unwrap());
            assert_eq!(sender.try_send(Opaque(4)).unwrap_err().into_inner().0, 4);
            assert_eq!(sender.send_timeout(Opaque(5), ms(1)).unwrap_err().into_inner().0, 5);
        }
    });
}

#[test]
fn an_error_tells_which_it_is() {
    let (full, gone) = (TrySendError::Full(1), TrySendError::Disconnected(1));
    assert_eq!((full.is_full(), full.is_disconnected()), (true, false));
    assert_eq!((gone.is_full(), gone.is_disconnected()), (false, true));
    let (late, gone) = (SendTimeoutError::Timeout(1), SendTimeoutError::Disconnected(1));
    assert_eq!((late.is_timeout(), late.is_disconnected()), (true, false));
    assert_eq!((gone.is_timeout(), gone.is_disconnected()), (false, true));
    assert!(TryRecvError::Empty.is_empty() && TryRecvError::Disconnected.is_disconnected());
    assert!(!TryRecvError::Empty.is_disconnected() && !TryRecvError::Disconnected.is_empty());
    assert!(RecvTimeoutError::Timeout.is_timeout() && RecvTimeoutError::Disconnected.is_disconnected());
    assert!(!RecvTimeoutError::Timeout.is_disconnected() && !RecvTimeoutError::Disconnected.is_timeout());
}

#[test]
fn the_plain_errors_convert_to_those_of_the_other_forms() {
    assert_eq!(TrySendError::from(SendError(1)), TrySendError::Disconnected(1));
    assert_eq!(SendTimeoutError::from(SendError(1)), SendTimeoutError::Disconnected(1));
    assert_eq!(TryRecvError::from(RecvError), TryRecvError::Disconnected);
    assert_eq!(RecvTimeoutError::from(RecvError), RecvTimeoutError::Disconnected);
}

#[test]
fn errors_are_copied_and_compared_like_their_values() {
    let (error, copy) = (SendError(1), |error: SendError<i32>| error);
    assert_eq!((copy(error), error.0), (error, 1));
    assert_ne!(TrySendError::Full(1), TrySendError::Disconnected(1));
    assert_ne!(SendTimeoutError::Timeout(1), SendTimeoutError::Timeout(2));
}

#[test]
fn a_select_without_operations_fails_at_once_or_after_its_time() {
    everywhere(|| {
        let start = Instant::now();
        assert_eq!(Select::new().try_select().map(drop), Err(TrySelectError));
        assert_eq!(Select::new().try_ready(), Err(TryReadyError));
        assert_eq!(Select::new().select_timeout(ms(1)).map(drop), Err(SelectTimeoutError));
        assert_eq!(Select::new().ready_timeout(ms(1)), Err(ReadyTimeoutError));
        assert!(start.elapsed() >= ms(2));
    });
}

#[test]
fn handles_show_themselves() {
    let (sender, receiver) = bounded::<Opaque>(1);
    assert!(format!("{sender:?}").contains("Sender"));
    assert!(format!("{receiver:?}").contains("Receiver"));
    assert!(format!("{:?}", receiver.iter()).contains("Iter"));
    assert!(format!("{:?}", receiver.try_iter()).contains("TryIter"));
    assert!(format!("{:?}", receiver.into_iter()).contains("IntoIter"));
    assert!(format!("{:?}", Select::new()).contains("Select"));
}
