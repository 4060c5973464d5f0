import FerryProtocol
import FerrySyncServer

extension StoreContract {
  /// Small limits, for quickly made values of the largest size.
  private static let small: Limits = {
    var limits = Limits.standard
    limits.recordStateBytes = 64 << 10
    limits.recordColumns = 40
    limits.columns = 20
    limits.messageBytes = 64 << 10
    limits.pageBytes = 32 << 10
    return limits
  }()

  /// Returns the columns of the range, each with a text of so many bytes.
  private static func columns(_ range: Range<Int>, bytes: Int) -> [Name: Value] {
    var columns: [Name: Value] = [:]
    for index in range { columns["c\(index)"] = .text(String(repeating: "x", count: bytes)) }
    return columns
  }

  static let sizes = [
    StoreContract("a write that makes a record too large is refused, and the record can be deleted")
    { under in
      try await under.withSpace(limits: small) { space in
        var author = Author(1)
        let packets = (0..<3).map { part in
          author.packet([
            author.operation(.insert, "small\(part)"),
            author.operation(
              .update, "a",
              columns(part * 10..<part * 10 + 10, bytes: 3_000).map { Column($0.key, $0.value) }),
          ])
        }
        try await space.send(packets[0])
        try require(try await space.send(packets[1]).status, is: .applied, "what still fits")
        let problem = try await space.send(packets[2]).problem
        try require(problem?.code, is: .operationRefused, "what does not fit")
        try require(problem?.refusals.map(\.code), is: [.recordTooLarge], "the refusal")
        try require(
          problem?.refusals.map(\.operation), is: [packets[2].operations[1].id], "what it names")
        try require(try await space.head(), is: 4, "the head")
        // Smaller values are accepted, and so is a delete, whatever it conflicts with.
        var other = Author(2)
        let less = other.packet([other.update("a", columns(0..<5, bytes: 10))])
        try require(try await space.send(less).status, is: .applied, "less of it")
        try require(
          try await space.send(other.packet([other.delete("a")])).status, is: .applied, "a delete")
      }
    },
    StoreContract(
      "the bytes of records that a packet writes are bounded, and other packets are applied"
    ) {
      under in
      var limits = small
      limits.packetStateBytes = 100_000
      try await under.withSpace(limits: limits) { space in
        var author = Author(1)
        for record in ["a", "b", "c"] {
          try await space.send(
            author.packet([author.insert(record, columns(0..<10, bytes: 4_000))]))
        }
        var other = Author(2)
        let three = other.packet(["a", "b", "c"].map { other.update($0, ["x": 1]) })
        let problem = try await space.send(three).problem
        try require(problem?.code, is: .limitExceeded, "three records of 40,000 bytes")
        try require(try await space.head(), is: 3, "the head")
        var third = Author(2)
        let two = third.packet(["a", "b"].map { third.update($0, ["x": 1]) })
        try require(try await space.send(two).status, is: .applied, "two of them")
        // A new record costs nothing here.
        let new = third.packet([third.insert("d", columns(0..<10, bytes: 4_000))])
        try require(try await space.send(new).status, is: .applied, "a new record")
      }
    },
    StoreContract("a record's number of columns is bounded") { under in
      try await under.withSpace(limits: small) { space in
        var author = Author(1)
        try await space.send(author.packet([author.insert("a", columns(0..<20, bytes: 1))]))
        try await space.send(author.packet([author.update("a", columns(20..<40, bytes: 1))]))
        let known = author.packet([author.update("a", columns(30..<40, bytes: 2))])
        try require(try await space.send(known).status, is: .applied, "columns that are there")
        let packet = author.packet([author.update("a", columns(40..<41, bytes: 1))])
        let problem = try await space.send(packet).problem
        try require(problem?.refusals.map(\.code), is: [.recordTooLarge], "a column more")
      }
    },
    StoreContract("a batch that makes a record too large is refused under its own identifier") {
      under in
      try await under.withSpace(limits: small) { space in
        var author = Author(1)
        let wide = columns(0..<20, bytes: 3_000)
        try await space.send(author.packet([author.insert("a", wide), author.insert("b", [:])]))
        let batch = try author.batch(where: "id <> ''", set: columns(20..<24, bytes: 3_000))
        let problem = try await space.send(author.packet([batch])).problem
        try require(problem?.refusals.map(\.operation), is: [batch.id], "what the refusal names")
        try require(problem?.refusals.map(\.code), is: [.recordTooLarge], "the refusal")
        try require(try await space.head(), is: 2, "the head")
      }
    },
    StoreContract("the size of a value that many devices build together is bounded") { under in
      try await under.withSpace(limits: small) { space in
        _ = try await space.apply(
          #"{"tables":{"tasks":{"columns":{"c0":"set-union","c1":"set-union"}}}}"#
        ).get()
        var problem: Problem?
        for device in 1...9 {
          var author = Author(UInt64(device))
          let list = "[" + (0..<900).map { "\"\(device)-\($0)\"" }.joined(separator: ",") + "]"
          let packet = author.packet([
            device == 1
              ? author.insert("a", ["c0": .text(list), "c1": .text(list)])
              : author.update("a", ["c0": .text(list), "c1": .text(list)])
          ])
          problem = try await space.send(packet).problem ?? problem
        }
        try require(problem?.refusals.map(\.code), is: [.recordTooLarge], "a union too large")
        let key = RecordKey.task("a")
        let page = try await space.store.records([key], in: space.space.id, now: 0).get()
        try require(page.count < small.answerBytes, "a record's page has \(page.count) bytes")
      }
    },
    StoreContract("the largest record and its notices fit into the largest page") { under in
      try await under.withSpace(limits: small) { space in
        var (author, other) = (Author(1), Author(2))
        var filler = Author(3)
        try await space.send(filler.packet([filler.insert("f", columns(0..<9, bytes: 3_500))]))
        try await space.send(author.packet([author.insert("a", columns(0..<20, bytes: 1_500))]))
        try await space.send(author.packet([author.update("a", columns(20..<40, bytes: 1_500))]))
        // Every value of the record loses at once, and another record replaces it.
        other.wall += 1_000
        let everything = other.packet([
          other.update("a", columns(0..<20, bytes: 1_501)),
          other.update("a", columns(20..<40, bytes: 1_501)), other.delete("a"),
        ])
        try require(try await space.send(everything).status, is: .applied, "the rival's packet")
        var request = PullRequest(
          cursor: nil, limit: 1_000, byteLimit: small.pageBytes, device: author.device)
        var largest = 0
        while true {
          let page = try await space.store.changes(
            in: space.space.id, request, now: SpaceUnderTest.now
          ).get()
          largest = max(largest, page.count)
          let head = try PageReader.head(of: page)
          request.cursor = head.cursor
          if !head.more { break }
        }
        try require(largest > small.pageBytes, "no page was large: \(largest) bytes")
        try require(
          largest <= small.answerBytes, "a page has \(largest) bytes, not \(small.answerBytes)")
        let answer = PacketAnswer(
          receipt: try await space.receipt(for: everything), epoch: space.space.epoch, head: 6,
          serverTime: 0)
        let bytes = answer.encoded(quoting: small.pageBytes).count
        try require(bytes <= small.answerBytes, "the rival's answer has \(bytes) bytes")
      }
    },
  ]
}
