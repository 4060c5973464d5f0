import Ferry

/// The README's example, line by line except for the two names chosen by the test; `ReadmeTests`
/// compares them.
func readmeExample(file: String, server: String) async throws {
  let replica = try await Replica.open(file, server: server, space: "demo")
  try await replica.write { database in
    try database.execute("CREATE TABLE IF NOT EXISTS notes(id TEXT PRIMARY KEY, body TEXT)")
  }
  try await replica.track("notes")
  try await replica.write { database in
    try database.execute(
      "INSERT INTO notes VALUES (?, ?)", [.text("\(UniqueID.generate())"), "hello"])
  }
  do {
    let report = try await replica.sync()
    print("sent \(report.pushed), received \(report.pulled)")
  } catch ReplicaError.offline {
    print("no server; the next sync sends the note")
  }
}
