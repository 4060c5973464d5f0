import Ferry

/// The example of a migrator in Documentation/migrations.md, line by line. Only the file is a test's;
/// `DocumentedMigrationTests` compares the lines.
func documentedMigration(file: String) async throws {
  var migrator = Migrator()
  migrator.add("create notes") {
    try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER)")
  }
  migrator.add("a note's body is its text") {
    try $0.renameColumn("body", of: "notes", to: "text")
  }
  migrator.add("numbers count from 1", recorded: true) {
    try $0.execute("UPDATE notes SET n = 1 WHERE n = 0")
  }

  let replica = try await Replica.open(file, server: "http://127.0.0.1:8080", space: "demo")
  let report = try await replica.migrate(migrator) { failure in
    print(failure)
    return .keepVersion
  }
  try await replica.track("notes")
  print(report.ran)
}
