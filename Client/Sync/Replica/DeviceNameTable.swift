import FerryProtocol
import FerrySQLite

/// The names of devices in a replica's file: `ferry_own_name` and `ferry_device_names` (SPEC.md §30).
struct DeviceNameTable {
  let connection: SQLiteConnection

  // MARK: This device's name

  func own() throws -> OwnName {
    try connection.first(
      "SELECT name, sent_as, sent, refused, changes FROM ferry_own_name"
    ) { row in
      OwnName(
        name: DeviceName(stored: row.optionalText(0)),
        sent: row.uniqueID(1).map {
          NamedDevice(DeviceID($0), DeviceName(stored: row.optionalText(2)))
        }, isRefused: row.int64(3) != 0, changes: row.int64(4))
    } ?? OwnName()
  }

  /// Stores this device's name, within a transaction.
  func set(_ name: DeviceName?) throws {
    var own = try own()
    own.set(name)
    try save(own)
  }

  /// Stores the names in the pages of a round. Returns the new state of the own name.
  func store(_ shown: ShownNames) throws -> OwnName {
    var own = try own()
    let before = own
    let isChanged = own.apply(shown)
    if own != before {
      try connection.transaction {
        try save(own)
        if isChanged { try connection.run("UPDATE ferry_device_names SET is_current = 0") }
      }
    }
    return own
  }

  /// Records the server's answer to the sent name.
  func endSending(_ sent: NamedDevice, isTaken: Bool) throws {
    try connection.transaction {
      var own = try own()
      own.end(sending: sent, isTaken: isTaken)
      try save(own)
    }
  }

  private func save(_ own: OwnName) throws {
    try connection.run(
      "UPDATE ferry_own_name SET name = ?, sent_as = ?, sent = ?, refused = ?, changes = ?",
      own.name?.text, own.sent?.device, own.sent?.name?.text, own.isRefused, own.changes)
  }

  // MARK: Other devices

  /// Makes the next sync request the names of a conflict's devices.
  func expectNames(of conflict: Conflict) throws {
    let insert = try connection.statement(
      "INSERT INTO ferry_device_names(device) VALUES (?) ON CONFLICT DO NOTHING")
    for device in [conflict.loser.device, conflict.winner.device] where device != .server {
      try insert.run(device)
    }
  }

  /// Returns devices with unknown or perhaps old names.
  func toAsk(limit: Int) throws -> [DeviceID] {
    try connection.rows(
      "SELECT device FROM ferry_device_names WHERE is_current = 0 ORDER BY device LIMIT ?", limit
    ) { $0.uniqueID(0).map { DeviceID($0) } }.compactMap { $0 }
  }

  /// Stores the server's answer; devices without a name in it have none.
  func save(_ answer: DevicesAnswer, of asked: [DeviceID]) throws {
    let names = Dictionary(uniqueKeysWithValues: answer.devices.map { ($0.device, $0.name) })
    try connection.transaction {
      let update = try connection.statement(
        "UPDATE ferry_device_names SET name = ?, is_current = 1 WHERE device = ?")
      for device in asked { try update.run(names[device]??.text, device) }
    }
  }

  /// Returns all known names.
  ///
  /// - Parameter device: this device; the own name belongs to it.
  func all(as device: DeviceID) throws -> DeviceNames {
    var known = try connection.rows("SELECT device, name FROM ferry_device_names") { row in
      row.uniqueID(0).map {
        NamedDevice(DeviceID($0), DeviceName(stored: row.optionalText(1)))
      }
    }.compactMap { $0 }
    known.removeAll { $0.device == device }
    known.append(NamedDevice(device, try own().name))
    return DeviceNames(known)
  }
}

extension DeviceName {
  /// Reads a name from the file; any program may have written it; `nil` if it is not a name.
  fileprivate init?(stored text: String?) {
    guard let text, let name = try? DeviceName(checking: text) else { return nil }
    self = name
  }
}
