//! The stack of Lua: what a script asks its server, and texts and answers on their way. Nearly all
//! of a simulated play is scripts, so this goes by the C functions of Lua.
//!
//! Lua leaves a frame by a jump when it raises an error, past everything that would have to be
//! dropped there. So no value of Rust is alive in a frame while something in it may raise, but for
//! the lack of memory, with which Rust would abort.

use crate::client::Client;
use crate::commands::{self, Call};
use crate::keyspace::Bytes;
use crate::reply::Reply;
use crate::state::State;
use mlua::ffi::{self, lua_State};
use std::any::Any;
use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::slice;

/// No answer of a script is nested deeper.
const DEPTH_MAX: usize = 64;
/// What one of these functions puts on the stack at most.
const ROOM: c_int = 8;

thread_local! {
    /// Whom the present script asks.
    static ASKED: Cell<*mut Asked<'static>> = const { Cell::new(null_mut()) };
}

struct Asked<'a> {
    state: &'a mut State,
    client: &'a mut Client,
    /// A command panicked, and Lua had to be left first.
    panic: Option<Box<dyn Any + Send>>,
}

/// Does something whose scripts ask this server.
pub(crate) fn asking<T>(state: &mut State, client: &mut Client, work: impl FnOnce() -> T) -> T {
    let mut asked = Asked {
        state,
        client,
        panic: None,
    };
    let outer = ASKED.replace((&raw mut asked).cast());
    let done = work();
    ASKED.set(outer);
    if let Some(panic) = asked.panic.take() {
        resume_unwind(panic);
    }
    done
}

/// `redis.call`: raises the errors that it is answered.
///
/// It is a C function, as in a Redis: a script that ends with `return redis.call(…)` would leave
/// its own frame for a Lua function, and its line would be lost.
pub(crate) unsafe extern "C-unwind" fn call(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that is valid. Nothing has to be dropped here.
    unsafe {
        if ask(lua) {
            ffi::lua_error(lua);
        }
    }
    1
}

/// `redis.pcall`: returns the errors that it is answered.
pub(crate) unsafe extern "C-unwind" fn pcall(lua: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that is valid.
    unsafe { ask(lua) };
    1
}

/// Carries out the command on the stack, and pushes its answer. Returns whether that is an error.
unsafe fn ask(lua: *mut lua_State) -> bool {
    // SAFETY: The state is valid and has room for 20 values beside the arguments. While numbers
    // become text, nothing of Rust is alive; afterwards nothing raises.
    unsafe {
        let count = ffi::lua_gettop(lua);
        let mut are_words = true;
        for at in 1..=count {
            match ffi::lua_type(lua, at) {
                ffi::LUA_TSTRING => {}
                ffi::LUA_TNUMBER => {
                    ffi::lua_getfield(lua, ffi::LUA_REGISTRYINDEX, c"number_text".as_ptr());
                    ffi::lua_pushvalue(lua, at);
                    ffi::lua_call(lua, 1, 1);
                    ffi::lua_replace(lua, at);
                }
                _ => are_words = false,
            }
        }
        let reply = if count == 0 {
            Reply::error("ERR Please specify at least one argument for this redis lib call")
        } else if !are_words {
            Reply::error("ERR Lua redis lib command arguments must be strings or integers")
        } else {
            let words: Vec<Bytes> = (1..=count).map(|at| text(lua, at).to_vec()).collect();
            answer(&words)
        };
        push(lua, &reply);
        matches!(reply, Reply::Error(_))
    }
}

fn answer(words: &[Bytes]) -> Reply {
    // SAFETY: Only a script calls this, and whoever runs one holds the server for it in a frame
    // below; nobody else looks at it meanwhile.
    let asked = unsafe { ASKED.get().as_mut() };
    let Some(asked) = asked else {
        return Reply::error("ERR there is no server to ask");
    };
    let Asked { state, client, .. } = asked;
    let call = Call {
        state,
        client,
        words,
    };
    catch_unwind(AssertUnwindSafe(|| commands::run_in_script(call))).unwrap_or_else(|panic| {
        asked.panic = Some(panic);
        Reply::error("ERR the server panicked")
    })
}

/// Calls the script at the top of the stack, and takes it away; returns its answer, or what a
/// client reads of one that failed.
///
/// # Safety
///
/// The state has to be valid, and an error has to be caught by the caller.
pub(crate) unsafe fn run_script(
    lua: *mut lua_State,
    hash: &str,
    keys: &[Bytes],
    arguments: &[Bytes],
) -> Result<Reply, Reply> {
    // SAFETY: There is room, and nothing has to be dropped while the script runs.
    unsafe {
        ffi::luaL_checkstack(lua, ROOM, c"a script".as_ptr());
        ffi::lua_getfield(lua, ffi::LUA_REGISTRYINDEX, c"run".as_ptr());
        ffi::lua_insert(lua, -2);
        push_texts(lua, keys);
        push_texts(lua, arguments);
        ffi::lua_call(lua, 3, 2);
        let top = ffi::lua_gettop(lua);
        let ended = match ffi::lua_toboolean(lua, top - 1) {
            0 => Err(failure(lua, top, hash)),
            _ => Ok(read(lua, top, 0)),
        };
        ffi::lua_settop(lua, top - 2);
        ended
    }
}

unsafe fn push_text(lua: *mut lua_State, text: &[u8]) {
    // SAFETY: The callers have room, and Lua copies the text.
    unsafe { ffi::lua_pushlstring(lua, text.as_ptr().cast(), text.len()) };
}

unsafe fn push_texts(lua: *mut lua_State, all: &[Bytes]) {
    // SAFETY: The callers have room for two values.
    unsafe {
        ffi::lua_createtable(lua, all.len() as c_int, 0);
        for (at, text) in (1..).zip(all) {
            push_text(lua, text);
            ffi::lua_rawseti(lua, -2, at);
        }
    }
}

unsafe fn push(lua: *mut lua_State, reply: &Reply) {
    // SAFETY: There is room for what is pushed, as deep as the answer is.
    unsafe {
        ffi::luaL_checkstack(lua, ROOM, c"an answer".as_ptr());
        let table = |name: &CStr, text: &str| {
            ffi::lua_createtable(lua, 0, 1);
            push_text(lua, name.to_bytes());
            push_text(lua, text.as_bytes());
            ffi::lua_rawset(lua, -3);
        };
        match reply {
            Reply::Nil | Reply::NilArray => ffi::lua_pushboolean(lua, 0),
            Reply::Int(number) => ffi::lua_pushnumber(lua, *number as f64),
            Reply::Bulk(bytes) => push_text(lua, bytes),
            Reply::Simple(text) => table(c"ok", text),
            Reply::Error(text) => table(c"err", text),
            Reply::Array(all) | Reply::Push(all) => push_list(lua, all.iter()),
            Reply::Map(pairs) => {
                push_list(lua, pairs.iter().flat_map(|(key, value)| [key, value]));
            }
        }
    }
}

unsafe fn push_list<'a>(lua: *mut lua_State, all: impl Iterator<Item = &'a Reply>) {
    // SAFETY: The caller has room for two values.
    unsafe {
        ffi::lua_createtable(lua, 0, 0);
        for (at, one) in (1..).zip(all) {
            push(lua, one);
            ffi::lua_rawseti(lua, -2, at);
        }
    }
}

/// Returns the text at this place, which has to be a text and to stay there.
unsafe fn text<'a>(lua: *mut lua_State, at: c_int) -> &'a [u8] {
    let mut length = 0;
    // SAFETY: The text is as long as Lua says, and there for as long as it is on the stack.
    unsafe {
        let text = ffi::lua_tolstring(lua, at, &mut length);
        slice::from_raw_parts(text.cast(), length)
    }
}

/// Reads the value at this place, counted from the bottom, as a client sees it.
unsafe fn read(lua: *mut lua_State, at: c_int, depth: usize) -> Reply {
    // SAFETY: The state is valid.
    unsafe {
        match ffi::lua_type(lua, at) {
            ffi::LUA_TBOOLEAN if ffi::lua_toboolean(lua, at) != 0 => Reply::Int(1),
            ffi::LUA_TNUMBER => Reply::Int(whole(ffi::lua_tonumber(lua, at))),
            ffi::LUA_TSTRING => Reply::Bulk(text(lua, at).to_vec()),
            ffi::LUA_TTABLE if depth < DEPTH_MAX => read_table(lua, at, depth),
            ffi::LUA_TTABLE => Reply::error("ERR reached lua stack limit"),
            _ => Reply::Nil,
        }
    }
}

unsafe fn read_table(lua: *mut lua_State, at: c_int, depth: usize) -> Reply {
    // SAFETY: The state is valid, and there is room for one more value in each depth.
    unsafe {
        ffi::luaL_checkstack(lua, ROOM, c"an answer".as_ptr());
        if let Some(text) = field(lua, at, c"err") {
            return Reply::Error(text);
        }
        if let Some(text) = field(lua, at, c"ok") {
            return Reply::Simple(text.replace(['\r', '\n'], " "));
        }
        let mut items = Vec::new();
        for number in 1.. {
            ffi::lua_rawgeti(lua, at, number);
            let top = ffi::lua_gettop(lua);
            let is_over = ffi::lua_type(lua, top) == ffi::LUA_TNIL;
            if !is_over {
                items.push(read(lua, top, depth + 1));
            }
            ffi::lua_settop(lua, top - 1);
            if is_over {
                break;
            }
        }
        Reply::Array(items)
    }
}

/// Returns the text in a field of the table at this place.
unsafe fn field(lua: *mut lua_State, at: c_int, name: &CStr) -> Option<String> {
    // SAFETY: The caller has room for a value.
    unsafe {
        push_text(lua, name.to_bytes());
        ffi::lua_rawget(lua, at);
        let top = ffi::lua_gettop(lua);
        let is_text = ffi::lua_type(lua, top) == ffi::LUA_TSTRING;
        let found = is_text.then(|| String::from_utf8_lossy(text(lua, top)).into_owned());
        ffi::lua_settop(lua, top - 1);
        found
    }
}

/// What a client reads of a script that failed with the value at this place.
unsafe fn failure(lua: *mut lua_State, at: c_int, hash: &str) -> Reply {
    // SAFETY: The state is valid and has room.
    unsafe {
        if ffi::lua_type(lua, at) != ffi::LUA_TTABLE {
            return Reply::error("ERR the script failed");
        }
        let text = field(lua, at, c"err").unwrap_or_else(|| "ERR unknown error".to_owned());
        match field(lua, at, c"line") {
            Some(line) => Reply::error(format!("{text} script: {hash}, on @user_script:{line}.")),
            None => Reply::error(text),
        }
    }
}

/// A client sees whole numbers only. One that is too large is what C makes of it on this machine.
fn whole(number: f64) -> i64 {
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    match number.abs() < TOO_LARGE {
        true => number as i64,
        false => i64::MIN,
    }
}
