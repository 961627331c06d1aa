//! The results of a campaign in a database.
//!
//! A result is one row, and one transaction writes it: a process that is killed loses the results that it has not
//! written, and nothing else. The database is in WAL mode. The name of a case is the primary key, so that a case has
//! one result, however often it runs, and databases of shards can be merged in any order.

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use std::collections::HashMap;
use std::path::Path;

/// How a case has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Exit code 0.
    Passed,
    /// Exit code 1: findings, a fault, wrong outputs.
    Failed,
    /// Exit code 2: the kernel or its launch is wrong.
    Invalid,
    /// It took longer than the limit.
    Timeout,
    /// Ended by a signal, or with another code: an error of the simulator, or too little memory.
    Crashed,
}

impl Status {
    /// All of them, in the order of reports.
    pub const ALL: [Status; 5] =
        [Status::Passed, Status::Failed, Status::Invalid, Status::Timeout, Status::Crashed];

    /// Returns the name in the database and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::Invalid => "invalid",
            Status::Timeout => "timeout",
            Status::Crashed => "crashed",
        }
    }

    /// Returns the status with a name.
    pub fn from_name(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// The result of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The name of the case.
    pub name: String,
    /// The kernel's file.
    pub kernel: String,
    /// The target; empty for the default.
    pub target: String,
    /// A hash of the kernel's file: a result for another content is no result.
    pub content: i64,
    /// How it ended.
    pub status: Status,
    /// The exit code, or the number of the signal as a negative number.
    pub code: i32,
    /// Duration in seconds.
    pub seconds: f64,
    /// Resident memory in kilobytes.
    pub memory_kb: u64,
    /// Standard output, if it is kept.
    pub output: String,
    /// Standard error, if it is kept.
    pub messages: String,
    /// The run of a SARIF log with findings; empty if there are none.
    pub sarif: String,
}

/// The error of a database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite reports an error.
    #[error("{path}: {source}")]
    Sqlite {
        /// The database.
        path: String,
        /// The error.
        source: rusqlite::Error,
    },
    /// The file is a database of something else.
    #[error("{0}: not a campaign's database")]
    Foreign(String),
}

/// The version of the schema (`PRAGMA user_version`), with a number that marks campaigns.
const VERSION: i64 = 0x7761_7601;

const SCHEMA: &str = "
CREATE TABLE campaign (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE results (
    name TEXT PRIMARY KEY,
    kernel TEXT NOT NULL,
    target TEXT NOT NULL,
    content INTEGER NOT NULL,
    status TEXT NOT NULL,
    code INTEGER NOT NULL,
    seconds REAL NOT NULL,
    memory_kb INTEGER NOT NULL,
    output TEXT NOT NULL,
    messages TEXT NOT NULL,
    sarif TEXT NOT NULL
) WITHOUT ROWID;
";

const COLUMNS: &str =
    "name, kernel, target, content, status, code, seconds, memory_kb, output, messages, sarif";

/// An open database.
pub struct Store {
    connection: Connection,
    path: String,
}

impl Store {
    /// Opens a database, or creates it.
    ///
    /// # Errors
    /// The file cannot be opened, or is something else.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Store::with(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a database that exists.
    ///
    /// # Errors
    /// As for [`Store::open`].
    pub fn existing(path: &Path) -> Result<Store, StoreError> {
        Store::with(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    fn with(path: &Path, flags: OpenFlags) -> Result<Store, StoreError> {
        let shown = path.display().to_string();
        let sqlite = |source| StoreError::Sqlite { path: shown.clone(), source };
        let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
        connection.busy_timeout(std::time::Duration::from_secs(30)).map_err(sqlite)?;
        // In WAL mode, NORMAL loses nothing when a process is killed; after a power failure, the last results may be
        // missing, and their cases run again.
        let mode = |pragma: &str, value: &str| connection.pragma_update(None, pragma, value);
        let foreign = |e: rusqlite::Error| match e.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => StoreError::Foreign(shown.clone()),
            _ => sqlite(e),
        };
        mode("journal_mode", "WAL").map_err(foreign)?;
        mode("synchronous", "NORMAL").map_err(sqlite)?;
        let version = || connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0));
        let tables =
            || connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0));
        // Of two processes that create it, one waits for the other.
        connection.execute_batch("BEGIN IMMEDIATE").map_err(sqlite)?;
        match (version().map_err(sqlite)?, tables().map_err(sqlite)?) {
            (VERSION, _) => {}
            (0, 0) => {
                let create = format!("{SCHEMA} PRAGMA user_version = {VERSION};");
                connection.execute_batch(&create).map_err(sqlite)?;
            }
            _ => return Err(StoreError::Foreign(shown)),
        }
        connection.execute_batch("COMMIT").map_err(sqlite)?;
        Ok(Store { connection, path: shown })
    }

    fn error(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { path: self.path.clone(), source }
    }

    /// Notes a fact of the campaign, such as its name.
    ///
    /// # Errors
    /// The database reports one.
    pub fn set(&self, name: &str, value: &str) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO campaign VALUES (?1, ?2)";
        self.connection.execute(sql, [name, value]).map(drop).map_err(|e| self.error(e))
    }

    /// Returns a fact of the campaign.
    ///
    /// # Errors
    /// The database reports one.
    pub fn get(&self, name: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT value FROM campaign WHERE name = ?1";
        self.connection.query_row(sql, [name], |row| row.get(0)).optional().map_err(|e| self.error(e))
    }

    /// Writes results in one transaction. A result replaces an older one of its case.
    ///
    /// # Errors
    /// The database reports one; then none has been written.
    pub fn write(&mut self, records: &[Record]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let error = |source| StoreError::Sqlite { path: path.clone(), source };
        let transaction = self.connection.transaction().map_err(error)?;
        {
            let sql = format!(
                "INSERT OR REPLACE INTO results ({COLUMNS}) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)"
            );
            let mut insert = transaction.prepare(&sql).map_err(error)?;
            for r in records {
                let row = params![
                    r.name,
                    r.kernel,
                    r.target,
                    r.content,
                    r.status.name(),
                    r.code,
                    r.seconds,
                    r.memory_kb as i64,
                    r.output,
                    r.messages,
                    r.sarif
                ];
                insert.execute(row).map_err(error)?;
            }
        }
        transaction.commit().map_err(error)
    }

    /// Returns the names of all cases with a result, with the hashes of their kernels.
    ///
    /// # Errors
    /// The database reports one.
    pub fn done(&self) -> Result<HashMap<Box<str>, i64>, StoreError> {
        let mut select =
            self.connection.prepare("SELECT name, content FROM results").map_err(|e| self.error(e))?;
        let rows = select.query_map([], |row| Ok((row.get::<_, Box<str>>(0)?, row.get(1)?)));
        rows.and_then(Iterator::collect).map_err(|e| self.error(e))
    }

    /// Calls a function with each result, in the order of names.
    ///
    /// # Errors
    /// The database reports one.
    pub fn each(&self, mut f: impl FnMut(Record)) -> Result<(), StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM results ORDER BY name");
        let mut select = self.connection.prepare(&sql).map_err(|e| self.error(e))?;
        let rows = select.query_map([], |row| {
            let status: String = row.get(4)?;
            Ok(Record {
                name: row.get(0)?,
                kernel: row.get(1)?,
                target: row.get(2)?,
                content: row.get(3)?,
                status: Status::from_name(&status).unwrap_or(Status::Crashed),
                code: row.get(5)?,
                seconds: row.get(6)?,
                memory_kb: row.get::<_, i64>(7)? as u64,
                output: row.get(8)?,
                messages: row.get(9)?,
                sarif: row.get(10)?,
            })
        });
        for row in rows.map_err(|e| self.error(e))? {
            f(row.map_err(|e| self.error(e))?);
        }
        Ok(())
    }

    /// Copies the results of another database, and replaces those of the same cases. Returns their number.
    ///
    /// # Errors
    /// One of the databases reports one; results before it have been copied.
    pub fn merge(&mut self, from: &Store) -> Result<u64, StoreError> {
        const BATCH: usize = 1000;
        let (mut batch, mut count, mut failed) = (Vec::new(), 0, None);
        if self.get("name")?.is_none() {
            let name = from.get("name")?.unwrap_or_default();
            self.set("name", &name)?;
        }
        from.each(|record| {
            batch.push(record);
            count += 1;
            if batch.len() >= BATCH && failed.is_none() {
                failed = self.write(&batch).err();
                batch.clear();
            }
        })?;
        match failed {
            Some(error) => Err(error),
            None => self.write(&batch).map(|()| count),
        }
    }
}
