//! Floor 8: the user's interface: spawn, join, sleep, `block_on`, scopes, races, timeouts and groups.

pub(crate) mod big_stack;
pub(crate) mod block_on;
pub(crate) mod builder;
pub(crate) mod cancel_token;
pub(crate) mod for_each;
pub(crate) mod fork;
pub(crate) mod group;
pub(crate) mod group_error;
pub(crate) mod interval;
pub(crate) mod join;
pub(crate) mod join_handle;
pub(crate) mod parallel_loop;
pub(crate) mod parallel_map;
pub(crate) mod park;
pub(crate) mod race;
pub(crate) mod range;
pub(crate) mod scope;
pub(crate) mod scope_children;
pub(crate) mod sleep;
pub(crate) mod spawn;
pub(crate) mod task_local;
pub(crate) mod timeout;
pub(crate) mod virtual_time;
pub(crate) mod yield_now;
