import Ferry
import FerryShell

struct Card: Codable, Sendable, TableRecord {
  var id: String
  var title: String
  var lane: String
  var position: Double
  static let table = Table<Card>(
    "cards",
    [.text("id").primaryKey(), .text("title"), .text("lane"), .real("position")])
}

/// The example of a shell in Documentation/shell.md, line by line; `DocumentedShellTests` compares the
/// lines.
func shellExample(replica: Replica) throws -> Shell {
  let total = Service(
    "cards.total", permission: "counts the cards of a lane",
    argument: .object([.required("lane", .text(max: 32))]), result: .integer(0 ... .max)
  ) { call in
    let lane = call.argument["lane"]?.text ?? ""
    return ServiceValue(
      try await replica.read { try Card.all.where(Field("lane") == lane).count($0) })
  }
  let registry = ServiceRegistry(
    DataServices(replica, tables: ["cards"]).all + [total], granting: ["data.query", "cards"])
  let shell = try Shell.start(DirectoryBundle("board"), services: registry)
  print("open \(shell.makeAddress())")
  return shell
}
