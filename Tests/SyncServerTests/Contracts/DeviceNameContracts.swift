import FerryProtocol
import FerrySyncServer

extension SpaceUnderTest {
  /// Gives a device a name. Returns whether the store took it.
  fileprivate func name(
    _ device: DeviceID, _ text: String?, by principal: Principal
  ) async throws -> Bool {
    let name = try text.map { try DeviceName(checking: $0) }
    return try await store.setDeviceName(name, of: device, in: space.id, by: principal)
  }

  /// Returns the known names of devices as texts.
  fileprivate func names(of devices: [DeviceID]) async throws -> [String?] {
    let found = try await store.deviceNames(of: devices, in: space.id)
    return devices.map { device in found.first { $0.device == device }?.name?.text }
  }

  /// Returns the name of a device and the number of changed names, from the device's pages.
  fileprivate func shown(
    to device: DeviceID, _ principal: Principal
  ) async throws -> (name: String?, changes: SequenceNumber) {
    let head = try await page(after: nil, device: device, from: principal).head
    return (head.deviceName?.text, head.nameChanges)
  }
}

extension StoreContract {
  private static let one = Principal.member(1)
  private static let two = Principal.member(2)

  static let deviceNames = [
    StoreContract("a device has the name that its owner gave it last, and its pages show it") {
      under in
      try await under.withSpace { space in
        var (first, second) = (Author(1), Author(2))
        try await space.send(first.packet(inserting: ["a"]), from: one)
        try await space.send(second.packet(inserting: ["b"]), from: two)
        let devices = [first.device, second.device]
        try require(try await space.names(of: devices), is: [nil, nil], "names at first")
        try require(try await space.shown(to: devices[0], one).changes, is: 0, "changes at first")
        for (name, count) in [("Ada's laptop", 1), ("Ada's laptop", 1), ("Ada’s 笔记本 👩‍💻", 2)] {
          let isTaken = try await space.name(devices[0], name, by: one)
          try require(isTaken, is: true, "whether the owner may")
          let shown = try await space.shown(to: devices[0], one)
          try require(shown.name, is: name, "the name in pages")
          try require(shown.changes, is: SequenceNumber(count), "the number of changed names")
        }
        let other = try await space.shown(to: devices[1], two)
        try require(other.name == nil && other.changes == 2, "another device has that name")
        try require(
          try await space.names(of: devices.reversed()), is: [nil, "Ada’s 笔记本 👩‍💻"], "names")
        // Packets leave the name as it is.
        try await space.send(first.packet(inserting: ["c"]), from: one)
        try require(try await space.names(of: devices)[0] != nil, "a packet removed the name")
        try require(try await space.name(devices[0], nil, by: one), is: true, "a removal")
        try require(try await space.names(of: devices), is: [nil, nil], "names after it")
        try require(try await space.shown(to: devices[0], one).changes, is: 3, "changes after it")
      }
    },
    StoreContract("only the owner of a device can name it") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let device = author.device
        try require(try await space.name(device, "early", by: one), is: false, "an unknown device")
        try await space.send(author.packet(inserting: ["a"]), from: one)
        try require(try await space.name(device, "Ada", by: one), is: true, "the owner")
        for principal in [two, .anonymous] {
          for name in ["Mallory", nil] {
            let isTaken = try await space.name(device, name, by: principal)
            try require(isTaken, is: false, "\(principal)")
          }
        }
        try require(try await space.names(of: [device]), is: ["Ada"], "the name")
        try require(try await space.shown(to: device, one).changes, is: 1, "changed names")
        // The same identifier in another space is another device.
        let other = try await space.store.createSpace(.name("other"))
        let found = try await space.store.deviceNames(of: [device], in: other.id)
        try require(found, is: [], "names in another space")
      }
    },
    StoreContract("a name does not go to another owner with its device") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let device = author.device
        try await space.send(author.packet(inserting: ["a"]), from: .anonymous)
        try require(try await space.name(device, "nobody's", by: .anonymous), is: true, "nobody")
        try require(try await space.name(device, "early", by: one), is: false, "before its packet")
        try await space.send(author.packet(inserting: ["b"]), from: one)
        try require(try await space.shown(to: device, one).name, is: nil, "the name in pages")
        try require(try await space.names(of: [device]), is: [nil], "the name")
        try require(try await space.name(device, "Ada", by: one), is: true, "the owner")
      }
    },
    StoreContract("names are there after the store was opened again") { under in
      var author = Author(1)
      try await under.withSpace { space in
        try await space.send(author.packet(inserting: ["a"]), from: one)
        try require(try await space.name(author.device, "Ada", by: one), is: true, "the owner")
      }
      try await under.withSpace { space in
        try require(try await space.names(of: [author.device]), is: ["Ada"], "the name")
        try require(try await space.shown(to: author.device, one).changes, is: 1, "changes")
      }
    },
  ]
}
