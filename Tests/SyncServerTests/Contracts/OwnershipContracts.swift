import FerryProtocol
import FerrySyncServer

extension Principal {
  /// Returns a principal; those of different numbers are different.
  static func member(_ number: Int) -> Principal { Principal("token:\(number)") ?? .anonymous }
}

extension StoreContract {
  private static let one = Principal.member(1)
  private static let two = Principal.member(2)

  static let ownership = [
    StoreContract("a device belongs to the first principal that uses it") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let first = author.packet(inserting: ["a"])
        try require(try await space.send(first, from: one).status, is: .applied, "the first packet")
        let forged = author.packet(inserting: ["forged"])
        for packet in [forged, first] {
          let problem = try await space.send(packet, from: two).problem
          try require(problem?.code, is: .deviceTaken, "another principal's packet")
          try require(problem?.code.status, is: 403, "its status")
        }
        try require(
          try await space.send(forged, from: .anonymous).problem?.code, is: .deviceTaken, "nobody's"
        )
        try require(try await space.head(), is: 1, "the head")
        try require(try await space.send(forged, from: one).status, is: .applied, "the owner's")
        // A buffered packet claims the device, too.
        var other = Author(2)
        let before = other.packet(inserting: ["b"])
        let after = other.packet(inserting: ["c"])
        try require(
          try await space.send(after, from: two).status, is: .buffered, "a buffered packet")
        try require(
          try await space.send(before, from: one).problem?.code, is: .deviceTaken, "its device")
        try require(try await space.usage(of: one).devices, is: 1, "devices of the first principal")
        try require(try await space.usage(of: two).devices, is: 1, "devices of the second one")
      }
    },
    StoreContract("if two principals use a device in one transaction, the first one owns it") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let packets = [author.packet(inserting: ["a"]), author.packet(inserting: ["b"])]
        let incoming = [(packets[1], two), (packets[0], one), (packets[0], two)].map {
          IncomingPacket($0.0, byteCount: 1, principal: $0.1)
        }
        let results = try await space.ingest(incoming, now: SpaceUnderTest.now).results
        try require(results[1].problem?.code, is: .deviceTaken, "the second principal")
        try require(
          results.map(\.status), is: [.applied, nil, .applied], "the answers of the transaction")
      }
    },
    StoreContract("a device from before the first token goes to the first principal") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]), from: .anonymous)
        let waiting = author.packet(inserting: ["b"])
        let last = author.packet(inserting: ["c"])
        try await space.send(last, from: .anonymous, byteCount: 7)
        let page = try await space.page(after: nil, device: author.device, from: two)
        try require(page.head.appliedTail == nil, is: false, "whether anybody may look before that")
        try require(try await space.send(waiting, from: one).status, is: .applied, "the first one")
        for principal in [two, .anonymous] {
          let result = try await space.send(last, from: principal)
          try require(result.problem?.code, is: .deviceTaken, "\(principal) afterwards")
        }
        try require(try await space.usage(of: .anonymous), is: try await emptied(space), "nobody's")
        let own = try await space.usage(of: one)
        try require([own.devices, own.packets, own.packetBytes], is: [1, 0, 0], "the owner's")
      }
    },
    StoreContract(
      "another principal cannot read or drop a device's notices, tail and buffered packets"
    ) { under in
      try await under.withSpace { space in
        var (victim, other) = (Author(1), Author(2))
        try await space.send(victim.packet([victim.insert("a", ["x": 1])]), from: one)
        other.wall += 1_000
        try await space.send(other.packet([other.update("a", ["x": 2])]), from: two)
        _ = victim.packet(inserting: ["missing"])
        let waiting = victim.packet(inserting: ["b"])
        try await space.send(waiting, from: one)

        let problem = await space.problem {
          _ = try await space.page(after: nil, device: victim.device, from: two)
        }
        try require(problem?.code, is: .deviceTaken, "a pull as another one's device")
        let former = try await space.notices(
          of: other.device, former: [victim.device], from: two)
        try require(former.count, is: 0, "notices of another one's former name")
        let own = try await space.notices(of: Author(3).device, former: [victim.device], from: one)
        try require(own.map(\.operation).count, is: 1, "notices of an own former name")
        let unknown = try await space.page(after: nil, device: Author(9).device, from: two)
        try require(unknown.head.appliedTail == nil, "a device that nobody used has a tail")

        // The same tail, cut otherwise, would replace the buffered packet.
        let rival = Packet(
          device: victim.device, dependency: nil, operations: waiting.operations, continues: true)
        try require(
          try await space.send(rival, from: two).problem?.code, is: .deviceTaken, "the rival")
        let buffered = try await space.store.buffered(in: space.space.id, of: victim.device)
        try require(buffered.packets, is: 1, "what is buffered")
      }
    },
    StoreContract("a base above the head is refused unless the operation is already in the history")
    {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        author.base = 1
        let ahead = author.packet(inserting: ["a"])
        let problem = try await space.send(ahead).problem
        try require(problem?.code, is: .cursorAhead, "a base ahead of an empty space")
        try require(try await space.head(), is: 0, "the head")
        var honest = Author(2)
        let first = honest.packet(inserting: ["b"])
        try await space.send(first)
        try require(try await space.send(ahead).status, is: .applied, "the base once it is there")
        let later = Packet(
          device: first.device, dependency: nil,
          operations: first.operations.map { operation in
            var operation = operation
            operation.base = 99
            return operation
          })
        try require(try await space.send(later).status, is: .duplicate, "what is known already")
      }
    },
    StoreContract("a space can require a cursor with each packet") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]), from: one)
        _ = try await space.apply(#"{"requireCursor":true,"tables":{}}"#).get()
        let packet = author.packet(inserting: ["b"])
        let problem = try await space.send(packet, from: one).problem
        try require(problem?.code, is: .cursorRequired, "a packet without a cursor")
        let cursor = try await space.page(after: nil).head.cursor
        let result = try await space.send(packet, from: one, cursor: cursor)
        try require(result.status, is: .applied, "a packet with one")
      }
    },
  ]

  /// Returns the usage of a principal after everything but the writes is gone.
  private static func emptied(_ space: SpaceUnderTest) async throws -> Usage {
    var usage = try await space.usage(of: .anonymous)
    (usage.devices, usage.packets, usage.packetBytes) = (0, 0, 0)
    return usage
  }
}

extension SpaceUnderTest {
  /// Reads one page for a principal, which must be served.
  func page(
    after cursor: Cursor?, device: DeviceID?, from principal: Principal
  ) async throws -> (head: PageHead, bytes: [UInt8]) {
    try await page(after: cursor, device: device, former: [], from: principal)
  }

  private func page(
    after cursor: Cursor?, device: DeviceID?, former: [DeviceID], from principal: Principal
  ) async throws -> (head: PageHead, bytes: [UInt8]) {
    var request = PullRequest(
      cursor: cursor, limit: 1_000, byteLimit: Limits.standard.pageBytes, device: device)
    request.former = former
    request.principal = principal
    let bytes = try await store.changes(in: space.id, request, now: Self.now).get()
    return (try PageReader.head(of: bytes), bytes)
  }

  /// Reads all notices of a device, for a principal.
  func notices(
    of device: DeviceID, former: [DeviceID] = [], from principal: Principal
  ) async throws -> [Notice] {
    let page = try await page(after: nil, device: device, former: former, from: principal)
    return try PageReader.notices(of: page.bytes, limits: .standard)
  }
}
