import Ferry

/// The code of the article "Your first replica", line by line except for the names chosen by the
/// test; `DocumentedFirstReplicaTests` compares them.
func documentedFirstReplica(folder: String, server: String) async throws {
  let phone = try await Replica.open(folder + "/phone.db", server: server, space: "first")
  let laptop = try await Replica.open(folder + "/laptop.db", server: server, space: "first")
  for device in [phone, laptop] {
    try await device.write { database in
      try database.execute("CREATE TABLE IF NOT EXISTS notes(id TEXT PRIMARY KEY, body TEXT)")
    }
    try await device.track("notes")
  }
  let id = Value.text("\(UniqueID.generate())")
  try await phone.write { database in
    try database.execute("INSERT INTO notes VALUES (?, ?)", [id, "Buy milk"])
  }
  let sent = try await phone.sync()
  let received = try await laptop.sync()
  print("sent \(sent.pushed), received \(received.pulled)")
  let texts = laptop.observe { try $0.query("SELECT body FROM notes").map { $0.values[0] } }
  var following = texts.makeAsyncIterator()
  print(try await following.next() ?? [])
  try await phone.write { try $0.execute("UPDATE notes SET body = 'Buy oat milk'") }
  try await laptop.write { try $0.execute("UPDATE notes SET body = 'Buy two milks'") }
  try await laptop.sync()
  try await phone.sync()
  let conflicts = try await phone.conflicts()
  let sides = try await phone.presentSides(of: conflicts)
  for (kept, side) in zip(conflicts, sides) {
    print("\(kept.conflict.lost) lost against \(side)")
    try await phone.resolve(kept.number, .keepLocal)
  }
  try await phone.sync()
  try await laptop.sync()
  print(try await laptop.read { try $0.query("SELECT body FROM notes").map { $0.values[0] } })
  await phone.close()
  await laptop.close()
}
