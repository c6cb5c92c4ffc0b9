//! Which questions a library answers with what it has.

use std::marker::PhantomData;

use super::super::{Enter, Tasks};
use super::alone::{self, Deed};
use super::crowd::{self, Lock, Permits, ReadLock};
use super::meeting::{self, Party};
use super::pairs::{self, Channel, Choice, Event, Oneshot, Request, Turns};
use super::spread::{self, Spread};
use super::{Asked, task};
use crate::compare::entrant::Rival;
use crate::compare::primitives::question::{
    ACQUIRERS, CONTENDERS, CROWD, Call, LOCKERS, PERMITS, Place, Question, READERS,
};
use crate::compare::question::Answer;

/// What a library has of one kind: how it answers a question about that, which is to be done so many times.
pub(in crate::compare) type Thing = fn(Question, u64) -> Option<Asked>;

/// A library.
pub(in crate::compare) trait Library<T: Tasks>: 'static {
    const THINGS: &'static [Thing];
}

/// Asks the library; `None` where it has no such thing.
pub(in crate::compare) fn ask<T: Tasks, L: Library<T>>(question: Question, operations: u64) -> Option<Asked> {
    L::THINGS.iter().find_map(|thing| thing(question, operations))
}

/// A library with its tasks, started.
pub(in crate::compare) struct Using<L, T, E> {
    entrance: E,
    library: PhantomData<(L, T)>,
}

impl<L, T, E> Using<L, T, E> {
    pub(in crate::compare) fn boxed(entrance: E) -> Box<Self> {
        Box::new(Using { entrance, library: PhantomData })
    }
}

impl<L: Library<T>, T: Tasks, E: Enter> Rival<Question> for Using<L, T, E> {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let asked = ask::<T, L>(question, operations).expect("it has entered for no other");
        match (asked, question.place()) {
            (Asked::Task(job), _) => self.entrance.ask(job),
            (Asked::Pair(first, second, finish), Place::Apart) => {
                finish(self.entrance.ask_apart(first, second))
            }
            (Asked::Pair(first, second, finish), Place::Together) => finish(self.entrance.ask(job!({
                let second = T::spawn_beside(second);
                let elapsed = run!(first);
                wait!(T::join(second));
                elapsed
            }))),
        }
    }
}

/// A mutex, reentrant or not.
pub(in crate::compare) fn mutex<T: Tasks, L: Lock>(question: Question, n: u64) -> Option<Asked> {
    Some(match (question, L::IS_REENTRANT) {
        (Question::MutexFree, false) | (Question::ReentrantFree, true) => crowd::lock_freely::<L>(n),
        (Question::MutexOverYield(tasks), false) => crowd::lock::<T, L, true>(tasks.into(), n),
        (Question::MutexTiny(tasks), false) => crowd::lock::<T, L, false>(tasks.into(), n),
        (Question::MutexApart, false) => crowd::lock_as_a_pair::<L>(n),
        (Question::ReentrantOverYield, true) => crowd::lock::<T, L, true>(LOCKERS, n),
        (Question::ReentrantTiny, true) => crowd::lock::<T, L, false>(CONTENDERS, n),
        _ => return None,
    })
}

pub(in crate::compare) fn read_write<T: Tasks, L: ReadLock>(question: Question, n: u64) -> Option<Asked> {
    Some(match question {
        Question::ReadFree => crowd::read_freely::<L>(n),
        Question::WriteFree => crowd::write_freely::<L>(n),
        Question::ReadWrite => crowd::share::<T, L, true>(READERS, n),
        Question::ReadWriteTiny(tasks) => crowd::share::<T, L, false>(tasks.into(), n),
        _ => return None,
    })
}

pub(in crate::compare) fn semaphore<T: Tasks, P: Permits>(question: Question, n: u64) -> Option<Asked> {
    Some(match question {
        Question::SemaphoreFree => crowd::acquire_freely::<P>(n),
        Question::Semaphore => crowd::acquire::<T, P, true>(PERMITS, ACQUIRERS, n),
        Question::SemaphoreTiny => crowd::acquire::<T, P, false>(PERMITS, CONTENDERS, n),
        _ => return None,
    })
}

pub(in crate::compare) fn event<E: Event>(question: Question, n: u64) -> Option<Asked> {
    Some(match question {
        Question::EventFree => pairs::set_freely::<E>(n),
        Question::Event(_) => pairs::set_to_and_fro::<E>(n),
        _ => return None,
    })
}

/// An event at which many can wait.
pub(in crate::compare) fn shared_event<T: Tasks, E: Event>(question: Question, n: u64) -> Option<Asked> {
    (question == Question::Wake(Call::Event)).then(|| crowd::set::<T, E>(CROWD, n))
}

pub(in crate::compare) fn condition<C: Turns>(question: Question, n: u64) -> Option<Asked> {
    matches!(question, Question::Condition(_)).then(|| pairs::take_turns::<C>(n))
}

/// A channel of one slot.
pub(in crate::compare) fn one_slot<C: Channel<u64>>(question: Question, n: u64) -> Option<Asked> {
    matches!(question, Question::PingPong(_)).then(|| pairs::ping_pong::<C>(n))
}

/// A channel without slots.
pub(in crate::compare) fn no_slot<C: Channel<u64>>(question: Question, n: u64) -> Option<Asked> {
    matches!(question, Question::Rendezvous(_)).then(|| pairs::ping_pong::<C>(n))
}

/// A channel of 128 slots.
pub(in crate::compare) fn slots<C: Channel<u64>>(question: Question, n: u64) -> Option<Asked> {
    matches!(question, Question::Bounded(_)).then(|| pairs::stream::<C>(n))
}

/// A channel of 128 slots, of which a task alone and eight producers ask.
pub(in crate::compare) fn more_slots<T: Tasks, C: Channel<u64>>(question: Question, n: u64) -> Option<Asked> {
    Some(match question {
        Question::ChannelFree => pairs::pass_freely::<C>(n),
        Question::BoundedEight => pairs::stream_from_eight::<T, C>(n),
        _ => return None,
    })
}

pub(in crate::compare) fn unbounded<C: Channel<u64>>(question: Question, n: u64) -> Option<Asked> {
    matches!(question, Question::Unbounded(_)).then(|| pairs::stream::<C>(n))
}

pub(in crate::compare) fn select<T: Tasks, C: Choice>(question: Question, n: u64) -> Option<Asked> {
    Some(match question {
        Question::Select => pairs::choose::<T, C>(n),
        Question::SelectFree => pairs::choose_freely::<C>(n),
        _ => return None,
    })
}

/// A oneshot, and a channel for the requests that it answers.
pub(in crate::compare) fn oneshot<C: Channel<Request<O>>, O: Oneshot>(
    question: Question,
    n: u64,
) -> Option<Asked> {
    Some(match question {
        Question::Call(_) => pairs::call::<C, O>(n),
        Question::OneshotFree => pairs::reply_freely::<O>(n),
        _ => return None,
    })
}

pub(in crate::compare) fn broadcast<T: Tasks, S: Spread>(question: Question, n: u64) -> Option<Asked> {
    Some(match question {
        Question::Broadcast => spread::send_to_all::<T, S>(n),
        Question::BroadcastFree => spread::pass_freely::<S>(n),
        _ => return None,
    })
}

pub(in crate::compare) fn watch<T: Tasks, S: Spread>(question: Question, n: u64) -> Option<Asked> {
    Some(match question {
        Question::Watch => spread::send_to_all::<T, S>(n),
        Question::WatchFree => spread::pass_freely::<S>(n),
        _ => return None,
    })
}

pub(in crate::compare) fn meeting<T: Tasks, P: Party>(question: Question, n: u64) -> Option<Asked> {
    (question == Question::Meet(P::MEETING)).then(|| task(meeting::meet::<T, P>(CROWD, n)))
}

pub(in crate::compare) fn deed<D: Deed>(question: Question, n: u64) -> Option<Asked> {
    (question == D::ASKED).then(|| alone::repeat::<D>(n))
}
