//! Scripts, in Lua 5.1 as in a Redis.

use crate::client::Client;
use crate::commands::{self, Call};
use crate::keyspace::Bytes;
use crate::reply::Reply;
use crate::state::State;
use mlua::{Function, Lua, Table, Value, ffi};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;

/// No answer of a script is nested deeper.
const DEPTH_MAX: usize = 64;

thread_local! {
    /// A script keeps nothing between two calls, so all servers of a thread share one machine.
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
}

struct Machine {
    lua: Lua,
    run: Function,
    compiled: BTreeMap<String, Function>,
}

/// Returns the name by which a script can be called.
pub(crate) fn hash_of(code: &[u8]) -> String {
    sha1_smol::Sha1::from(code).digest().to_string()
}

impl State {
    /// Makes a script known; returns its hash.
    pub(crate) fn load(&mut self, code: &[u8]) -> Result<String, Reply> {
        let hash = hash_of(code);
        if !self.scripts.contains_key(&hash) {
            with_machine(|machine| machine.compiled(&hash, code).map(|_| ()))?;
            self.scripts.insert(hash.clone(), Arc::from(code));
        }
        Ok(hash)
    }

    /// Runs a script that is known.
    pub(crate) fn eval(
        &mut self,
        client: &mut Client,
        hash: &str,
        keys: &[Bytes],
        arguments: &[Bytes],
    ) -> Result<Reply, Reply> {
        let unknown = || Reply::error("NOSCRIPT No matching script. Please use EVAL.");
        let code = self.scripts.get(hash).cloned().ok_or_else(unknown)?;
        with_machine(|machine| {
            let script = machine.compiled(hash, &code)?;
            let answer = machine.run(self, client, hash, script, keys, arguments);
            answer.unwrap_or_else(|error| Err(Reply::error(format!("ERR {error}"))))
        })
    }
}

fn with_machine<T>(work: impl FnOnce(&mut Machine) -> Result<T, Reply>) -> Result<T, Reply> {
    MACHINE.with_borrow_mut(|machine| {
        if machine.is_none() {
            let made = Machine::new();
            let made = made.map_err(|error| Reply::error(format!("ERR no Lua: {error}")))?;
            *machine = Some(made);
        }
        work(machine.as_mut().expect("made above"))
    })
}

impl Machine {
    fn new() -> mlua::Result<Machine> {
        let lua = Lua::new();
        let line = lua.create_function(|lua, ()| Ok(line_of_script(lua)))?;
        let sha1 = lua.create_function(|_, text: mlua::String| Ok(hash_of(&text.as_bytes())))?;
        let raising = lua.create_function(|lua, asked: Function| raising(lua, asked))?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("@prelude");
        let run = prelude.call((line, sha1, raising))?;
        Ok(Machine {
            lua,
            run,
            compiled: BTreeMap::new(),
        })
    }

    fn compiled(&mut self, hash: &str, code: &[u8]) -> Result<Function, Reply> {
        if let Some(script) = self.compiled.get(hash) {
            return Ok(script.clone());
        }
        let loaded = self.lua.load(code).set_name("@user_script").into_function();
        let script = loaded.map_err(|error| {
            let text = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                other => other.to_string(),
            };
            Reply::error(format!("ERR Error compiling script (new function): {text}"))
        })?;
        self.compiled.insert(hash.to_owned(), script.clone());
        Ok(script)
    }

    fn run(
        &self,
        state: &mut State,
        client: &mut Client,
        hash: &str,
        script: Function,
        keys: &[Bytes],
        arguments: &[Bytes],
    ) -> mlua::Result<Result<Reply, Reply>> {
        let texts = |all: &[Bytes]| {
            let all = all.iter().map(|text| self.lua.create_string(text));
            let all: mlua::Result<Vec<mlua::String>> = all.collect();
            self.lua.create_sequence_from(all?)
        };
        let (keys, arguments) = (texts(keys)?, texts(arguments)?);
        self.lua.scope(|scope| {
            let ask = scope.create_function_mut(|lua, words: Vec<mlua::String>| {
                let words: Vec<Bytes> = words.iter().map(|w| w.as_bytes().to_vec()).collect();
                let reply = commands::run_in_script(Call {
                    state,
                    client,
                    words: &words,
                });
                to_lua(lua, reply)
            })?;
            let (is_fine, answer): (bool, Value) = self.run.call((script, ask, keys, arguments))?;
            Ok(match is_fine {
                true => Ok(from_lua(&answer, 0)),
                false => Err(failure(&answer, hash)),
            })
        })
    }
}

/// Makes a function that calls this one and raises the errors that it returns.
///
/// It is a C function, as `redis.call` is in a Redis: a script that ends with `return
/// redis.call(…)` would leave its own frame for a Lua function, and its line would be lost.
fn raising(lua: &Lua, asked: Function) -> mlua::Result<Function> {
    lua.set_named_registry_value("asked", asked)?;
    // SAFETY: `call_or_raise` keeps to the rules of a C function of Lua.
    unsafe { lua.create_c_function(call_or_raise) }
}

unsafe extern "C-unwind" fn call_or_raise(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that is valid and has room for 20 values; at most
    // three are added. An error leaves this frame, in which nothing has to be dropped.
    unsafe {
        let count = ffi::lua_gettop(state);
        ffi::lua_getfield(state, ffi::LUA_REGISTRYINDEX, c"asked".as_ptr());
        ffi::lua_insert(state, 1);
        ffi::lua_call(state, count, 1);
        if ffi::lua_type(state, -1) == ffi::LUA_TTABLE {
            ffi::lua_getfield(state, -1, c"err".as_ptr());
            let is_error = ffi::lua_type(state, -1) != ffi::LUA_TNIL;
            ffi::lua_pop(state, 1);
            if is_error {
                ffi::lua_error(state);
            }
        }
        1
    }
}

/// Returns the line of the script that is being carried out.
fn line_of_script(lua: &Lua) -> Option<usize> {
    let frame = |level| {
        lua.inspect_stack(level, |frame| {
            let is_script = frame
                .source()
                .source
                .is_some_and(|name| name == "@user_script");
            is_script.then(|| frame.current_line()).flatten()
        })
    };
    (0..).map_while(frame).flatten().next()
}

/// What a client reads of a script that failed.
fn failure(error: &Value, hash: &str) -> Reply {
    let Value::Table(error) = error else {
        return Reply::error("ERR the script failed");
    };
    let field = |name: &str| error.raw_get::<Option<mlua::String>>(name).ok().flatten();
    let text = field("err").map_or_else(|| "ERR unknown error".to_owned(), |t| t.to_string_lossy());
    match field("line") {
        Some(line) => Reply::error(format!(
            "{text} script: {hash}, on @user_script:{}.",
            line.to_string_lossy()
        )),
        None => Reply::error(text),
    }
}

fn to_lua(lua: &Lua, reply: Reply) -> mlua::Result<Value> {
    let table = |name: &str, text: String| {
        let table = lua.create_table()?;
        table.raw_set(name, text)?;
        Ok(Value::Table(table))
    };
    match reply {
        Reply::Nil | Reply::NilArray => Ok(Value::Boolean(false)),
        Reply::Int(number) => Ok(Value::Integer(number)),
        Reply::Bulk(bytes) => lua.create_string(bytes).map(Value::String),
        Reply::Simple(text) => table("ok", text),
        Reply::Error(text) => table("err", text),
        Reply::Array(all) | Reply::Push(all) => list(lua, all),
        Reply::Map(pairs) => {
            let flat = pairs.into_iter().flat_map(|(key, value)| [key, value]);
            list(lua, flat.collect())
        }
    }
}

fn list(lua: &Lua, all: Vec<Reply>) -> mlua::Result<Value> {
    let all: mlua::Result<Vec<Value>> = all.into_iter().map(|one| to_lua(lua, one)).collect();
    lua.create_sequence_from(all?).map(Value::Table)
}

fn from_lua(value: &Value, depth: usize) -> Reply {
    match value {
        Value::Boolean(true) => Reply::Int(1),
        Value::Integer(number) => Reply::Int(*number),
        Value::Number(number) => Reply::Int(whole(*number)),
        Value::String(text) => Reply::Bulk(text.as_bytes().to_vec()),
        Value::Table(table) if depth < DEPTH_MAX => from_table(table, depth),
        Value::Table(_) => Reply::error("ERR reached lua stack limit"),
        _ => Reply::Nil,
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

fn from_table(table: &Table, depth: usize) -> Reply {
    let field = |name: &str| match table.raw_get::<Value>(name) {
        Ok(Value::String(text)) => Some(text.to_string_lossy()),
        _ => None,
    };
    if let Some(text) = field("err") {
        return Reply::Error(text);
    }
    if let Some(text) = field("ok") {
        return Reply::Simple(text.replace(['\r', '\n'], " "));
    }
    let items = (1..).map_while(|at: i64| match table.raw_get::<Value>(at) {
        Ok(Value::Nil) | Err(_) => None,
        Ok(value) => Some(from_lua(&value, depth + 1)),
    });
    Reply::Array(items.collect())
}
