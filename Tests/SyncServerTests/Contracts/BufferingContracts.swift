import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let buffering = [
    StoreContract("a packet without its predecessor is buffered and counted") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let first = author.packet(inserting: ["a"])
        let second = author.packet(inserting: ["b"])
        let result = try await space.send(second, byteCount: 321)
        try require(result.status, is: .buffered, "the packet")
        try require(result.receipt?.outcomes, is: [], "its outcomes")
        try require(try await space.send(second, byteCount: 321).status, is: .buffered, "its twin")
        let (packets, bytes) = try await space.store.buffered(
          in: space.space.id, of: author.device)
        try require(packets == 1 && bytes == 321, "\(packets) packets of \(bytes) bytes wait")
        let other = try await space.store.buffered(in: space.space.id, of: Author(2).device)
        try require(other == (0, 0), "another device has packets waiting")
        try require(try await space.everything().records.isEmpty, "a waiting packet is seen")
        let closing = try await space.send(first)
        try require(closing.released.map(\.tail), is: [second.tail].compactMap { $0 }, "released")
      }
    },
    StoreContract("the buffer is bounded by packets, and accepts the packet that closes the gap") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let packets = (0..<103).map { author.packet(inserting: ["r\($0)"]) }
        for packet in packets[1...100] {
          try require(try await space.send(packet).status, is: .buffered, "within the limit")
        }
        let problem = try unwrap(
          try await space.send(packets[101]).problem, "the 101st waiting packet is let in")
        try require(problem.code, is: .bufferFull, "the problem")
        try require(problem.code.status, is: 429, "its status")
        try require(
          problem.detail.contains("100") && problem.detail.contains("16777216"),
          "the detail does not name the limits: \(problem.detail)")
        try require(
          try await space.send(packets[5]).status, is: .buffered, "one that waits already")
        let closing = try await space.send(packets[0])
        try require(closing.released.count, is: 100, "released packets")
        try require(try await space.send(packets[101]).status, is: .applied, "the refused one")
      }
    },
    StoreContract("the buffer is bounded by bytes") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let packets = (0..<5).map { author.packet(inserting: ["r\($0)"]) }
        let half = Limits.standard.bufferedBytes / 2
        try await space.send(packets[1], byteCount: half)
        try await space.send(packets[2], byteCount: half)
        let refused = try await space.send(packets[3], byteCount: 1)
        try require(refused.problem?.code, is: .bufferFull, "a byte too many")
        var other = Author(2)
        _ = other.packet(inserting: ["x"])
        let elsewhere = try await space.send(other.packet(inserting: ["y"]), byteCount: half)
        try require(elsewhere.status, is: .buffered, "another device's packet")
      }
    },
    StoreContract("a full buffer accepts the packet that it waits for") { under in
      var limits = Limits.standard
      limits.bufferedPackets = 3
      try await under.withSpace(limits: limits) { space in
        var author = Author(1)
        let packets = (0..<3).map { author.packet(inserting: ["r\($0)"], continues: $0 < 2) }
        let later = (3..<6).map { author.packet(inserting: ["r\($0)"]) }
        for packet in later { try await space.send(packet) }
        try require(try await space.send(packets[0]).status, is: .buffered, "its first part")
        try require(try await space.send(packets[1]).status, is: .buffered, "its second part")
        let closing = try await space.send(packets[2])
        try require(closing.status, is: .applied, "its last part")
        try require(closing.released.count, is: 5, "released packets")
      }
    },
    StoreContract("buffered packets survive a restart") { under in
      var author = Author(1)
      let packets = (0..<3).map { author.packet(inserting: ["r\($0)"]) }
      try await under.withSpace { space in
        try require(try await space.send(packets[2]).status, is: .buffered, "the last packet")
        try require(try await space.send(packets[1]).status, is: .buffered, "the middle packet")
      }
      try await under.withSpace { space in
        let result = try await space.send(packets[0])
        try require(
          result.released.map(\.sequences), is: [2...2, 3...3], "released after the restart")
        try require(try await space.everything().records.count, is: 3, "records")
      }
    },
    StoreContract("a buffered packet is dropped when another packet overtakes it") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let first = author.packet(inserting: ["a"])
        var clone = author
        clone.wall += 1
        let second = author.packet(inserting: ["b"])
        let rival = clone.packet(inserting: ["c"])
        try await space.send(second)
        try await space.send(rival)
        try await space.send(first)
        let (waiting, _) = try await space.store.buffered(in: space.space.id, of: author.device)
        try require(waiting, is: 0, "packets that can never be applied")
        try require(
          try await space.send(rival).problem?.code, is: .deviceForked, "the rival, sent again")
        try require(try await space.everything().records.count, is: 2, "records")
      }
    },
    StoreContract("operations of a buffered packet that arrived in another packet are applied once")
    {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let first = author.packet(inserting: ["a"])
        let second = author.packet(inserting: ["b", "c"])
        try await space.send(second)
        var renamed = author.renamed(2)
        try await space.send(renamed.packet(second.operations))
        let closing = try await space.send(first)
        try require(closing.released.map(\.status), is: [.duplicate], "the waiting packet")
        try require(try await space.head(), is: 3, "the head")
      }
    },
  ]
}
