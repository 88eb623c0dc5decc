//! A real Chromium in a container without a network, made once and removed at the end.

use crate::support::*;
use fencepost::cluster::docker::DockerRuntime;
use fencepost::cluster::{Image, Runtime};
use serde_json::Value;
use std::path::Path;

const FOLDER: &str = "tests/images/chromium";
/// Where pages are looked at, and where pictures are left.
const PAGES: &str = "/pages";
/// For one look; the container's own `timeout` ends it.
const SECONDS: &str = "60";
/// A test that is killed removes nothing; then the container ends by itself.
const LIFETIME_SECONDS: &str = "900";

pub struct Browser {
    container: String,
}

/// What one look came to.
pub struct Look {
    /// What the page's console said, of pages and not of the browser's own.
    pub complaints: Vec<String>,
    dom: String,
}

impl Browser {
    pub async fn start() -> Browser {
        let image = Image::named(FOLDER, &[project().into()]);
        let name = image.name.clone();
        let runtime = DockerRuntime::connect(images_lock())
            .await
            .expect("Docker is there");
        let ids = runtime.prepare(&[image], &Silent).await;
        let id = &ids.unwrap_or_else(|error| panic!("{error}"))[&name];
        // Without a network, a page that fetches anything fails to.
        let run = [
            "run",
            "-d",
            "--rm",
            "--network",
            "none",
            "--shm-size",
            "256m",
        ];
        let container = docker_ok(&[&run[..], &[id, "sleep", LIFETIME_SECONDS]].concat());
        docker_ok(&["exec", &container, "mkdir", PAGES]);
        Browser { container }
    }

    pub fn put(&self, file: &Path, name: &str) {
        let to = format!("{}:{PAGES}/{name}", self.container);
        docker_ok(&["cp", file.to_str().expect("a plain path"), &to]);
    }

    pub fn write(&self, content: &str, name: &str) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join(name);
        std::fs::write(&file, content).expect("a temporary file");
        self.put(&file, name);
    }

    /// Loads a page to its end, and has these flags do something with it.
    pub fn look(&self, page: &str, flags: &[&str]) -> Look {
        let url = format!("file://{PAGES}/{page}");
        let browser = [
            "exec",
            &self.container,
            "timeout",
            SECONDS,
            "chromium",
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--allow-file-access-from-files",
            "--enable-logging=stderr",
            "--v=0",
        ];
        let output = docker(&[&browser[..], flags, &[&url]].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{page} {flags:?}: {stderr}");
        let said = stderr.lines().filter(|line| line.contains("CONSOLE"));
        let said = said.filter(|line| line.contains(&format!("file://{PAGES}")));
        Look {
            complaints: said.map(str::to_owned).collect(),
            dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        }
    }

    /// What a page of ours wrote into its element `measured`.
    pub fn measure(&self, page: &str, flags: &[&str]) -> (Value, Vec<String>) {
        let Look { complaints, dom } = self.look(page, &[flags, &["--dump-dom"]].concat());
        let measured = dom.split("<pre id=\"measured\">").nth(1);
        let measured = measured.and_then(|rest| rest.split("</pre>").next());
        let text = measured.unwrap_or_else(|| panic!("nothing is measured in {dom}"));
        let text = text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        let json = serde_json::from_str(&text);
        (
            json.unwrap_or_else(|error| panic!("{error}: {text:?}, {complaints:?}")),
            complaints,
        )
    }

    /// A page on paper: its words, with single spaces, and how many sheets it takes.
    pub fn printed(&self, page: &str) -> (String, usize) {
        let pdf = format!("{PAGES}/printed.pdf");
        self.look(page, &[&format!("--print-to-pdf={pdf}")]);
        let text = docker_ok(&["exec", &self.container, "pdftotext", &pdf, "-"]);
        // Each sheet ends with a form feed.
        let sheets = text.matches('\u{c}').count().max(1);
        let words: Vec<&str> = text.split_whitespace().collect();
        (words.join(" "), sheets)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        docker(&["rm", "-f", &self.container]);
    }
}
