import FerryProtocol
import FerrySyncServer

extension StoreContract {
  private static let one = Principal.member(1)
  private static let two = Principal.member(2)

  /// Two tokens made by the principal `owner:ada`.
  private static let made = ["0", "1"].map { digit in
    Principal("token:" + String(repeating: digit, count: 16) + "@owner:ada") ?? .anonymous
  }

  private static func quotas(_ change: (inout Quotas) -> Void) -> Quotas {
    var quotas = Quotas.standard
    change(&quotas)
    return quotas
  }

  static let quotas = [
    StoreContract("a store above its quota refuses inserts and applies deletes") { under in
      let quotas = quotas {
        $0.principalBytes = 2_000
        $0.spaceRecords = 12
      }
      try await under.withSpace(quotas: quotas) { space in
        var (author, other) = (Author(1), Author(2))
        let text = Value.text(String(repeating: "x", count: 700))
        try await space.send(author.packet([author.insert("a", ["x": text])]), from: one)
        try await space.send(author.packet([author.insert("b", ["x": text])]), from: one)
        let tail = author.tail
        let third = author.insert("c", ["x": text])
        let packet = Packet(device: author.device, dependency: tail, operations: [third])
        let problem = try await space.send(packet, from: one).problem
        try require(problem?.code, is: .storageQuota, "a third record")
        try require(problem?.code.status, is: 507, "its status")
        try require(try await space.head(), is: 2, "the head")
        // Others have separate quotas; and freed room can be used again.
        let records = (0..<10).map { "r\($0)" }
        try require(
          try await space.send(other.packet(inserting: records), from: two).status, is: .applied,
          "another principal's records")
        let full = Packet(
          device: author.device, dependency: tail, operations: [author.insert("d", [:])])
        try require(
          try await space.send(full, from: one).problem?.code, is: .storageQuota,
          "a record more than the space may have")
        let delete = Packet(
          device: author.device, dependency: tail, operations: [author.delete("a")])
        try require(try await space.send(delete, from: one).status, is: .applied, "a delete")
        let again = Packet(device: author.device, dependency: delete.tail, operations: [third])
        try require(try await space.send(again, from: one).status, is: .applied, "in its place")
        try require(try await space.usage().records, is: 12, "records of the space")
        try require(try await space.usage(of: two).records, is: 10, "another principal's")
      }
    },
    StoreContract("a principal is not charged for bytes that another principal stored") { under in
      try await under.withSpace { space in
        var (author, other) = (Author(1), Author(2))
        let text = Value.text(String(repeating: "x", count: 5_000))
        try await space.send(author.packet([author.insert("a", ["x": text])]), from: one)
        let before = try await space.usage(of: one)
        try require(before.bytes > 5_000, "the author was charged \(before.bytes) bytes")
        try await space.send(other.packet([other.update("a", ["y": 1])]), from: two)
        try require(try await space.usage(of: one), is: before, "the author's")
        let second = try await space.usage(of: two)
        try require(second.bytes < 500, "a small edit was charged \(second.bytes) bytes")
        try await space.send(other.packet([other.delete("a")]), from: two)
        try require(try await space.usage(of: two).bytes, is: 0, "after a delete: never below 0")
        try require(try await space.usage().bytes, is: 0, "all of the space")
      }
    },
    StoreContract("the bytes written in a day are bounded, and the count starts again the next day")
    { under in
      try await under.withSpace(quotas: quotas { $0.dailyBytes = 2_000 }) { space in
        var author = Author(1)
        let text = Value.text(String(repeating: "x", count: 1_500))
        let first = author.packet([author.insert("a", ["x": text])])
        try await space.send(first, from: one)
        try await space.send(author.packet([author.update("a", ["x": text])]), from: one)
        let packet = author.packet([author.delete("a")])
        let problem = try await space.send(packet, from: one).problem
        try require(problem?.code, is: .writeQuota, "the third packet of the day")
        try require(problem?.code.action, is: .retry, "what helps")
        try require(try await space.send(first, from: one).status, is: .duplicate, "a duplicate")
        let tomorrow = SpaceUnderTest.now + Usage.dayLength
        let result = try await space.send(packet, from: one, now: tomorrow)
        try require(result.status, is: .applied, "the next day")
      }
    },
    StoreContract("a principal's buffered packets are bounded over all its devices") { under in
      let quotas = quotas {
        $0.bufferedPackets = 2
        $0.bufferedBytes = 1_000
      }
      try await under.withSpace(quotas: quotas) { space in
        var authors = (1...4).map { Author(UInt64($0)) }
        let firsts = authors.indices.map { authors[$0].packet(inserting: ["a\($0)"]) }
        let seconds = authors.indices.map { authors[$0].packet(inserting: ["b\($0)"]) }
        for index in 0..<2 {
          let result = try await space.send(seconds[index], from: one, byteCount: 400)
          try require(result.status, is: .buffered, "packet \(index)")
        }
        try require(
          try await space.send(seconds[2], from: one).problem?.code, is: .bufferFull, "a third one")
        try require(
          try await space.send(seconds[3], from: two, byteCount: 1_001).problem?.code,
          is: .bufferFull, "too many bytes")
        try require(
          try await space.send(seconds[3], from: two).status, is: .buffered, "another principal's")
        let used = try await space.usage(of: one)
        try require([used.packets, used.packetBytes], is: [2, 800], "what is counted")
        let all = try await space.usage()
        try require(all.packets, is: 3, "packets of all")
        try require(
          try await space.send(firsts[0], from: one).released.count, is: 1, "what is released")
        try require(
          try await space.send(seconds[2], from: one).status, is: .buffered, "in its place")
        try await space.pruneSlices(bufferedBefore: SpaceUnderTest.now)
        let left = try await space.usage(of: one)
        try require([left.packets, left.packetBytes], is: [0, 0], "after pruning")
        let rest = try await space.usage()
        try require([rest.packets, rest.packetBytes], is: [0, 0], "of all after pruning")
      }
    },
    StoreContract("tokens that one principal made share its quotas, and no devices") { under in
      let quotas = quotas {
        $0.devices = 4
        $0.bufferedPackets = 2
        $0.principalRecords = 3
      }
      try await under.withSpace(quotas: quotas) { space in
        var authors = (1...4).map { Author(UInt64($0)) }
        let firsts = authors.indices.map { authors[$0].packet(inserting: ["a\($0)"]) }
        let seconds = authors.indices.map { authors[$0].packet(inserting: ["b\($0)"]) }
        for index in 0..<2 {
          let result = try await space.send(seconds[index], from: made[index])
          try require(result.status, is: .buffered, "packet \(index)")
        }
        try require(
          try await space.send(seconds[2], from: made[0]).problem?.code, is: .bufferFull,
          "a third packet")
        try require(
          try await space.send(firsts[0], from: made[1]).problem?.code, is: .deviceTaken,
          "the other token's device")
        let account = made[0].account
        try require(try await space.usage(of: account).packets, is: 2, "packets of both")
        try await space.pruneSlices(bufferedBefore: SpaceUnderTest.now)
        try require(try await space.usage(of: account).packets, is: 0, "packets after pruning")
        for (packet, token) in [(firsts[0], 0), (seconds[0], 0), (firsts[1], 1)] {
          try require(
            try await space.send(packet, from: made[token]).status, is: .applied, "a record")
        }
        try require(
          try await space.send(seconds[1], from: made[1]).problem?.code, is: .storageQuota,
          "a fourth record")
        try require(try await space.usage(of: account).records, is: 3, "records of both")
        let owner = try unwrap(Principal("owner:ada"), "the maker")
        try require(
          try await space.send(firsts[3], from: owner).problem?.code, is: .storageQuota,
          "the maker's own record")
        try require(try await space.usage(of: account).devices >= 2, "devices of all")
        let slice = PruneSlice(bufferedBefore: 0, devicesBefore: SpaceUnderTest.now, rows: 50)
        try await space.prune()
        _ = try await space.store.prune(slice, of: space.space.id)
        try require(try await space.usage(of: account).devices, is: 0, "devices after pruning")
      }
    },
    StoreContract("the spaces that an account's tokens created are bounded together") { under in
      let store = try await under.open(.standard)
      let marks = made.map { AuditMark($0, at: SpaceUnderTest.now) }
      let first = try await store.createSpace(.name("first"), by: marks[0], quota: 1)
      try require(first != nil, "the first space")
      let second = try await store.createSpace(.name("second"), by: marks[1], quota: 1)
      try require(second == nil, "the other token's space")
      await store.close()
    },
    StoreContract("above a space's bytes of a day, principals that wrote little go on") { under in
      let quotas = quotas { $0.spaceDailyBytes = 100_000 }
      try await under.withSpace(quotas: quotas) { space in
        var (author, other) = (Author(1), Author(2))
        let text = Value.text(String(repeating: "x", count: 60_000))
        for record in ["a", "b"] {
          try await space.send(author.packet([author.insert(record, ["x": text])]), from: one)
        }
        let packet = author.packet([author.update("a", ["x": 1])])
        try require(
          try await space.send(packet, from: one).problem?.code, is: .writeQuota,
          "a principal that wrote much")
        try require(
          try await space.send(other.packet(inserting: ["c"]), from: two).status, is: .applied,
          "a principal that wrote nothing")
        let tomorrow = SpaceUnderTest.now + Usage.dayLength
        try require(
          try await space.send(packet, from: one, now: tomorrow).status, is: .applied,
          "the next day")
      }
    },
    StoreContract("a principal's number of devices is bounded") { under in
      try await under.withSpace(quotas: quotas { $0.devices = 2 }) { space in
        var authors = (1...4).map { Author(UInt64($0)) }
        let packets = authors.indices.map { authors[$0].packet(inserting: ["a\($0)"]) }
        try await space.send(packets[0], from: one)
        try await space.send(packets[1], from: one)
        try require(
          try await space.send(packets[2], from: one).problem?.code, is: .storageQuota, "a third")
        try require(
          try await space.send(authors[0].packet(inserting: ["c"]), from: one).status,
          is: .applied, "one that is known")
        try require(
          try await space.send(packets[2], from: two).status, is: .applied, "another principal's")
      }
    },
    StoreContract("many principals of a space do not exceed its number of devices") { under in
      try await under.withSpace(quotas: quotas { $0.spaceDevices = 4 }) { space in
        var authors = (1...7).map { Author(UInt64($0)) }
        let packets = authors.indices.map { authors[$0].packet(inserting: ["a\($0)"]) }
        // The half of the quota is for principals without a device.
        for (index, principal, code) in [
          (0, 1, nil), (1, 1, nil), (2, 1, .storageQuota), (3, 2, nil), (4, 2, .storageQuota),
          (5, 3, nil), (6, 4, .storageQuota),
        ] as [(Int, Int, ProblemCode?)] {
          let result = try await space.send(packets[index], from: .member(principal))
          try require(result.problem?.code, is: code, "device \(index) of \(principal)")
        }
        try require(try await space.usage().devices, is: 4, "devices of the space")
        // Devices new in one commit count together.
        try await space.prune()
        let slice = PruneSlice(bufferedBefore: 0, devicesBefore: SpaceUnderTest.now, rows: 50)
        _ = try await space.store.prune(slice, of: space.space.id)
        try require(try await space.usage().devices, is: 0, "devices after pruning")
        var others = (11...16).map { Author(UInt64($0)) }
        let results = try await space.send(
          others.indices.map { others[$0].packet(inserting: ["b\($0)"]) })
        try require(results.filter { $0.status == .applied }.count, is: 2, "devices of one commit")
      }
    },
    StoreContract("many principals of a space do not exceed the packets that it buffers") { under in
      let quotas = quotas {
        $0.spaceBufferedPackets = 4
        $0.spaceBufferedBytes = 10_000
      }
      try await under.withSpace(quotas: quotas) { space in
        var authors = (1...7).map { Author(UInt64($0)) }
        let firsts = authors.indices.map { authors[$0].packet(inserting: ["a\($0)"]) }
        let seconds = authors.indices.map { authors[$0].packet(inserting: ["b\($0)"]) }
        for (index, principal, bytes, code) in [
          (0, 1, 10, nil), (1, 1, 10, nil), (2, 1, 10, .bufferFull), (3, 2, 10, nil),
          (4, 3, 9_990, .bufferFull), (4, 3, 10, nil), (5, 4, 10, .bufferFull),
        ] as [(Int, Int, Int, ProblemCode?)] {
          let result = try await space.send(
            seconds[index], from: .member(principal), byteCount: bytes)
          try require(result.problem?.code, is: code, "packet \(index) of \(principal)")
        }
        let used = try await space.usage()
        try require([used.packets, used.packetBytes], is: [4, 40], "what is counted")
        try require(
          try await space.send(firsts[0], from: .member(1)).released.count, is: 1, "the released")
        try require(
          try await space.send(seconds[5], from: .member(4)).status, is: .buffered, "in its place")
      }
    },
  ]

  static let deviceAges = [
    StoreContract(
      "the chain of an absent device is trimmed, and its packets are still applied once"
    ) {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let packets = (0..<20).map { author.packet(inserting: ["r\($0)"]) }
        for packet in packets { try await space.send(packet, from: one) }
        try await space.prune()
        let slice = PruneSlice(
          bufferedBefore: 0, chainsBefore: SpaceUnderTest.now, rows: 50)
        guard case .pruned(let rows, _, _) = try await space.store.prune(slice, of: space.space.id)
        else { throw ContractViolation(description: "another server prunes") }
        try require(rows.devices, is: 1, "chains that were trimmed")
        // Packets that may lack a response are known; older ones are never applied again.
        for packet in packets.suffix(8) {
          try require(try await space.send(packet, from: one).status, is: .duplicate, "sent again")
        }
        for packet in [packets[3], packets[0]] {
          let result = try await space.send(packet, from: one)
          try require(result.problem?.code, is: .deviceForked, "an older packet")
        }
        try require(
          try await space.send(author.packet(inserting: ["x"]), from: two).problem?.code,
          is: .deviceTaken, "another principal's")
        try require(try await space.head(), is: 20, "the head")
        let next = Packet(
          device: author.device, dependency: packets[19].tail,
          operations: [author.insert("next", [:])])
        try require(try await space.send(next, from: one).status, is: .applied, "its next packet")
      }
    },
    StoreContract("a device that was absent for very long is forgotten and no longer counted") {
      under in
      try await under.withSpace { space in
        var (author, other) = (Author(1), Author(2))
        try await space.send(author.packet(inserting: ["a"]), from: one)
        _ = other.packet(inserting: ["b"])
        try await space.send(other.packet(inserting: ["c"]), from: one)
        let slice = PruneSlice(bufferedBefore: 0, devicesBefore: SpaceUnderTest.now, rows: 50)
        // While all history is kept, nothing is pruned.
        _ = try await space.store.prune(slice, of: space.space.id)
        try require(try await space.usage(of: one).devices, is: 2, "devices before pruning")
        try await space.prune()
        _ = try await space.store.prune(slice, of: space.space.id)
        try require(try await space.usage(of: one).devices, is: 1, "devices after it")
        try require(try await space.usage().devices, is: 1, "devices of all")
        try require(try await space.appliedTail(of: author.device) == nil, "its tail is there")
        let buffered = try await space.store.buffered(in: space.space.id, of: other.device)
        try require(buffered.packets, is: 1, "what another device has buffered")
        var renamed = author.renamed(3)
        try require(
          try await space.send(renamed.packet(inserting: ["d"]), from: one).status, is: .applied,
          "the device under a new name")
      }
    },
  ]
}
