//! The real binary, its own configuration, and requests to it byte by byte.
//!
//! It must never end a process that it did not start.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use ichido_verify::{Request, Secret, Settings, Timestamp, Verifier};

/// A database that nobody listens for: port 1 is never taken by a database.
pub(crate) const AWAY: &str = "postgres://postgres@127.0.0.1:1/none";
/// The secret of every endpoint here.
pub(crate) const SECRET: &str = "whsec_geheim_geheim";
/// How long anything here may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// A directory with a configuration.
pub(crate) struct Site {
    dir: tempfile::TempDir,
    database: Option<String>,
}

impl Site {
    /// A site with this `ichido.toml`.
    pub(crate) fn new(config: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("ichido.toml"), config).expect("the file");
        Self { dir, database: None }
    }

    /// The same on a database.
    pub(crate) fn on(mut self, database: &str) -> Self {
        self.database = Some(database.to_owned());
        self
    }

    /// A copy of the billing example on a database of its own.
    pub(crate) fn billing(database: Option<String>) -> Self {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/billing");
        let config = fs::read_to_string(example.join("ichido.toml")).expect("the example");
        let config = config.replace("env:STRIPE_WEBHOOK_SECRET", "env:SECRET");
        let mut site = Self::new(&config);
        site.database = database;
        for engine in ["postgres", "sqlite"] {
            let folder = site.dir.path().join(engine);
            fs::create_dir(&folder).expect("a directory");
            for file in fs::read_dir(example.join(engine)).expect("the example").flatten() {
                fs::copy(file.path(), folder.join(file.file_name())).expect("copied");
            }
        }
        site
    }

    /// Where its files are.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Adds a file.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        fs::write(self.dir.path().join(name), text).expect("the file");
        self
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_ichido")));
        command.env_remove("DATABASE_URL").env_remove("ICHIDO_CONFIG");
        command.current_dir(self.dir.path()).env("SECRET", SECRET).args(args);
        command.envs(self.database.iter().map(|url| ("DATABASE_URL", url)));
        command
    }

    /// Runs a command to its end; gives its exit code and all that it wrote.
    pub(crate) fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        self.run_with(args, ("UNUSED", ""))
    }

    /// [`Site::run`] with a variable.
    pub(crate) fn run_with(
        &self,
        args: &[&str],
        (name, value): (&str, &str),
    ) -> (Option<i32>, String) {
        let output = self.command(args).env(name, value).output();
        let Output { status, stdout, stderr } = output.expect("runs");
        let text = [stdout, stderr].concat();
        (status.code(), String::from_utf8(text).expect("UTF-8"))
    }

    /// Starts `serve` on a free port and waits for its `listening` line.
    pub(crate) fn serve(&self) -> Server {
        self.serve_on("127.0.0.1:0")
    }

    /// The same on an address of the caller's.
    pub(crate) fn serve_on(&self, address: &str) -> Server {
        self.serve_with(&["--listen", address])
    }

    /// The same with these options.
    pub(crate) fn serve_with(&self, options: &[&str]) -> Server {
        let mut command = self.command(&[&["serve"], options].concat());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("starts");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let log = Arc::new(Mutex::new(String::new()));
        let lines = log.clone();
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                lines.lock().expect("not poisoned").push_str(&(line + "\n"));
            }
        });
        let mut server = Server { child, log, address: ([127, 0, 0, 1], 0).into() };
        server.address = server.says_it_is_on("listening on http");
        server
    }
}

/// A whole request to the endpoint `billing`, signed as Stripe would.
pub(crate) fn signed(body: &[u8]) -> Vec<u8> {
    let verifier = Verifier::new("stripe", &Settings::default(), &[Secret::new(SECRET)]);
    let verifier = verifier.expect("a good secret");
    let mut request =
        Request { method: "POST".into(), body: body.to_vec().into(), ..Request::default() };
    verifier.sign(&mut request, "-", "-", Timestamp::now()).expect("signed");
    let length = body.len();
    let mut raw = format!(
        "POST /webhooks/billing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-length: {length}\r\n"
    )
    .into_bytes();
    for (name, value) in request.headers.iter() {
        raw.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    raw.extend(b"\r\n");
    raw.extend(body);
    raw
}

/// A running server, killed when the test ends.
pub(crate) struct Server {
    child: Child,
    log: Arc<Mutex<String>>,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Everything that was logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("not poisoned").clone()
    }

    /// Where its health listener is.
    pub(crate) fn health(&self) -> SocketAddr {
        self.says_it_is_on("health and metrics on http")
    }

    /// The address in the log's line with `text`, which ends within its URL's scheme.
    fn says_it_is_on(&self, text: &str) -> SocketAddr {
        let log = self.wait_for(text);
        let (_, url) = log.split_once(text).expect("waited for");
        let (_, address) = url.split_once("://").expect("a URL");
        // In JSON a quote ends it.
        let end = |c: char| c.is_whitespace() || c == '"';
        address.split(end).next().expect("an address").parse().expect("an address")
    }

    /// The log, as soon as it holds `text`.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let end = Instant::now() + DEADLINE;
        loop {
            let log = self.log();
            if log.contains(text) && log.ends_with('\n') {
                return log;
            }
            assert!(Instant::now() < end, "`{text}` never came in:\n{log}");
            thread::park_timeout(Duration::from_millis(10));
        }
    }

    /// Sends `request` as it is and reads until the server closes or has answered.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("connects");
        stream.set_read_timeout(Some(DEADLINE)).expect("set");
        stream.write_all(request).expect("sent");
        let mut text = Vec::new();
        // A reset after the answer is as good as an end: the server did not read the rest.
        let _ = stream.read_to_end(&mut text);
        Answer::parse(&String::from_utf8(text).expect("UTF-8"))
    }

    /// One request on a connection of its own.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        for (name, value) in headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        let length = body.len().to_string();
        request.extend(["content-length: ", &length, "\r\n\r\n", body]);
        self.raw(request.as_bytes())
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("runs");
        self.child.wait().expect("ends");
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let (name, id) = (format!("-{name}"), self.id().to_string());
        let sent = Command::new("kill").args([name, id]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Waits for its end and gives the exit code.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().expect("ends").code()
    }

    /// Sends SIGTERM and gives the exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.exit_code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer, its headers without those that differ each time: date and request id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

impl Answer {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("a whole head");
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status");
        let differs = |line: &&str| line.starts_with("date:") || line.starts_with("x-request-id:");
        let headers = lines.filter(|line| !differs(line)).map(str::to_owned);
        Self {
            status: status.parse().expect("a number"),
            headers: headers.collect(),
            body: body.to_owned(),
        }
    }

    /// True when the header line is there as it is.
    pub(crate) fn has(&self, line: &str) -> bool {
        self.headers.iter().any(|have| have == line)
    }
}
