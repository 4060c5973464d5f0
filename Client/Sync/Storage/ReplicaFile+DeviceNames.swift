import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// The requests about names that a sync ends with.
struct NameWork: Sendable, Equatable {
  /// The name to send, with the present identifier.
  var own: NamedDevice?
  /// Devices in conflicts whose names the server may know.
  var devices: [DeviceID] = []
}

/// The names of devices (SPEC.md §30).
extension ReplicaFile {
  // MARK: This device's name

  func ownName() throws -> OwnName {
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

  private func save(_ own: OwnName) throws {
    try connection.run(
      "UPDATE ferry_own_name SET name = ?, sent_as = ?, sent = ?, refused = ?, changes = ?",
      own.name?.text, own.sent?.device, own.sent?.name?.text, own.isRefused, own.changes)
  }

  /// Gives this device a name, in all spaces of the file.
  func setDeviceName(_ name: DeviceName?) throws {
    try connection.transaction {
      for file in spaces.all { try file.keepOwnName(name) }
    }
  }

  /// Keeps the name in this space's ledger, within a transaction.
  func keepOwnName(_ name: DeviceName?) throws {
    var own = try ownName()
    own.set(name)
    try save(own)
  }

  /// Whether a sync has to send the name.
  func hasUnsentName() throws -> Bool {
    try ownName().isToSend(as: identity().device, isKnown: packets.hasChain())
  }

  // MARK: Syncs

  /// Notes the names that the pages of a round show. Returns the requests that follow.
  ///
  /// - Parameter sends: whether the round sends; a pull does not send a name either.
  func nameWork(after shown: ShownNames?, sends: Bool) throws -> NameWork {
    let device = try identity().device
    var own = try ownName()
    if let shown {
      let before = own
      let isChanged = own.note(shown)
      if own != before {
        try connection.transaction {
          try save(own)
          if isChanged { try connection.run("UPDATE ferry_device_names SET is_current = 0") }
        }
      }
    }
    let isKnown = shown?.device == device && shown?.isKnown == true
    var work = NameWork()
    if try sends && own.isToSend(as: device, isKnown: isKnown || packets.hasChain()) {
      work.own = NamedDevice(device, own.name)
    }
    // No device of the space has ever had a name.
    if own.changes > 0 { work.devices = try devicesToAsk() }
    return work
  }

  func endSending(_ sent: NamedDevice, isTaken: Bool) throws {
    try connection.transaction {
      var own = try ownName()
      own.end(sending: sent, isTaken: isTaken)
      try save(own)
    }
  }

  private func devicesToAsk() throws -> [DeviceID] {
    try connection.rows(
      "SELECT device FROM ferry_device_names WHERE is_current = 0 ORDER BY device LIMIT ?",
      limits.devicesPerRequest
    ) { $0.uniqueID(0).map { DeviceID($0) } }.compactMap { $0 }
  }

  /// Stores the server's answer; devices without a name in it have none.
  func saveDeviceNames(_ answer: DevicesAnswer, of asked: [DeviceID]) throws {
    let names = Dictionary(uniqueKeysWithValues: answer.devices.map { ($0.device, $0.name) })
    try connection.transaction {
      let update = try connection.statement(
        "UPDATE ferry_device_names SET name = ?, is_current = 1 WHERE device = ?")
      for device in asked { try update.run(names[device]??.text, device) }
    }
  }

  // MARK: Conflicts

  /// Has the next sync ask for the names of a conflict's devices.
  func expectNames(of conflict: Conflict) throws {
    let insert = try connection.statement(
      "INSERT INTO ferry_device_names(device) VALUES (?) ON CONFLICT DO NOTHING")
    for device in [conflict.loser.device, conflict.winner.device] where device != .server {
      try insert.run(device)
    }
  }

  func deviceNames() throws -> DeviceNames {
    var known = try connection.rows("SELECT device, name FROM ferry_device_names") { row in
      row.uniqueID(0).map {
        NamedDevice(DeviceID($0), DeviceName(stored: row.optionalText(1)))
      }
    }.compactMap { $0 }
    let own = try identity().device
    known.removeAll { $0.device == own }
    known.append(NamedDevice(own, try ownName().name))
    return DeviceNames(known)
  }
}

extension DeviceName {
  /// Reads a name from the file, into which any program may have written; `nil` if it is none.
  fileprivate init?(stored text: String?) {
    guard let text, let name = try? DeviceName(checking: text) else { return nil }
    self = name
  }
}
