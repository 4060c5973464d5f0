import FerryProtocol

/// Checks rows that move between spaces, in the final states of all spaces.
///
/// 1. A record of a shared table is in the space named by its column.
/// 2. A token, a row with a worth, exists in exactly one space, with its original worth: no move
///    loses or doubles it. So the worths of all tokens have the sum set by users.
///
/// Tokens are not judged if their maker's file went back to an earlier state, or was copied. The
/// moves forgotten by the file may have reached one space and not the other.
package struct MovedRows {
  package static let name = "moved-rows"

  private struct Token {
    let maker: String
    let worth: Value?
    var isDoubtful = false
  }

  private var tokens: [RecordKey: Token] = [:]

  package init() {}

  package mutating func see(_ event: RunEvent) {
    switch event {
    case .committed(let device, let operations):
      for operation in operations where operation.kind == .insert { record(operation, device) }
    case .lostPower(let device, _): doubt(device)
    case .copied(let device, let original, _):
      doubt(device)
      doubt(original)
    case .read, .confirmed, .serverWentBack, .serverLies: break
    }
  }

  private mutating func record(_ operation: LocalOperation, _ device: String) {
    let worth = operation.columns.first { $0.name == "worth" }?.value
    guard Workload.shared.tables.contains(operation.key.table), case .integer(1...)? = worth,
      tokens[operation.key] == nil
    else { return }
    tokens[operation.key] = Token(maker: device, worth: worth)
  }

  private mutating func doubt(_ device: String) {
    for (key, token) in tokens where token.maker == device { tokens[key]?.isDoubtful = true }
  }

  /// - Parameter servers: the final states of all spaces.
  package func judge(_ servers: [SpaceName: ServerEvidence]) -> [Violation] {
    var places: [RecordKey: [String]] = [:]
    var found: [String] = []
    for (space, server) in servers.sorted(by: { $0.key.value < $1.key.value }) {
      let records = server.records.filter {
        Workload.shared.tables.contains($0.key.table) && $0.value.isAlive
      }
      for (key, state) in records.sorted(by: { $0.key < $1.key }) {
        func value(_ column: Name) -> Value? {
          state.columns.first { $0.name == column }?.value
        }
        if value(Workload.shared.column) != .text(space.value) {
          found.append("\(key) of \(space) names another space")
        }
        guard let token = tokens[key], !token.isDoubtful else { continue }
        places[key, default: []].append(space.value)
        if value("worth") != token.worth { found.append("\(key) has another worth") }
      }
    }
    for (key, token) in tokens.sorted(by: { $0.key < $1.key }) where !token.isDoubtful {
      let spaces = places[key] ?? []
      if spaces.count == 1 { continue }
      found.append(
        "\(key) of \(token.maker) is "
          + (spaces.isEmpty ? "lost" : "in \(spaces.joined(separator: " and "))"))
    }
    return found.map { Violation(oracle: Self.name, $0) }
  }
}
