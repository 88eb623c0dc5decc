//! Scripts, in Lua 5.1 as in a Redis.

use crate::client::Client;
use crate::keyspace::Bytes;
use crate::reply::Reply;
use crate::stack;
use crate::state::State;
use mlua::{Function, Lua};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

thread_local! {
    /// A script keeps nothing between two calls, so all servers of a thread share one machine.
    static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
}

const GARBAGE_PERCENT: i32 = 1000;

struct Machine {
    lua: Lua,
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
            let answer = machine.run(self, client, hash, script, (keys, arguments));
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
        // Little is alive between two scripts, so it may grow to some megabytes before a look.
        lua.gc_set_pause(GARBAGE_PERCENT);
        let line = lua.create_function(|lua, ()| Ok(line_of_script(lua)))?;
        let sha1 = lua.create_function(|_, text: mlua::String| Ok(hash_of(&text.as_bytes())))?;
        // SAFETY: Both keep to the rules of a C function of Lua.
        let (call, pcall) = unsafe {
            let call = lua.create_c_function(stack::call)?;
            (call, lua.create_c_function(stack::pcall)?)
        };
        let prelude = lua.load(include_str!("prelude.lua")).set_name("@prelude");
        let made: (Function, Function) = prelude.call((line, sha1, call, pcall))?;
        lua.set_named_registry_value("run", made.0)?;
        lua.set_named_registry_value("number_text", made.1)?;
        Ok(Machine {
            lua,
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
        (keys, arguments): (&[Bytes], &[Bytes]),
    ) -> mlua::Result<Result<Reply, Reply>> {
        let mut answer = Err(Reply::error("ERR the script failed"));
        stack::asking(state, client, || {
            // SAFETY: The state is that of this machine, which catches errors here.
            unsafe {
                self.lua.exec_raw::<()>(script, |lua| {
                    answer = stack::run_script(lua, hash, keys, arguments);
                })
            }
        })?;
        Ok(answer)
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
