import FerryProtocol
import FerrySyncServer
import FerryTestSupport

extension StoreContract {
  static let digests = [
    StoreContract("the sums of a space's trees equal the sums of its records after any operations")
    {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        var random = SeededGenerator(seed: 7)
        for round in 0..<6 {
          try await space.send(
            author.packet(
              (0..<120).map { _ in author.anything(in: 90, using: &random) }))
          // Some rounds are folded one by one, others together.
          if round.isMultiple(of: 2) { try await space.requireSums() }
        }
        try await space.requireSums()
      }
    },
    StoreContract("each node is the sum of the nodes below it, and leaves list their records") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: (0..<50).map { "r\($0)" }))
        let wanted = try await space.expectedSums()["tasks"] ?? DigestSums()
        var nodes = [DigestNode.root]
        while let first = nodes.first, !first.isLeaf {
          let answers = try await space.nodes(nodes)
          try require(answers.map(\.node), is: nodes, "the nodes answered")
          nodes = []
          for answer in answers {
            guard case .children(let children) = answer.digests else {
              throw ContractViolation(description: "node \(answer.node) lists records")
            }
            for (child, digest) in zip(answer.node.children, children) {
              try require(digest, is: wanted[child], "the digest of node \(child)")
              if digest != .zero { nodes.append(child) }
            }
          }
        }
        var listed: [Name] = []
        for answer in try await space.nodes(nodes) {
          guard case .records(let records) = answer.digests else {
            throw ContractViolation(description: "leaf \(answer.node) lists no records")
          }
          listed += records.map(\.record)
        }
        try require(
          listed.sorted(), is: (0..<50).map { Name("r\($0)") }.sorted(), "the records listed")
      }
    },
    StoreContract("the records of a leaf continue in further answers") { under in
      var limits = Limits.standard
      (limits.digestsPerAnswer, limits.pageBytes) = (3, 1 << 20)
      try await under.withSpace(limits: limits) { space in
        var author = Author(1)
        // Names of one leaf, which a writer can choose.
        let names = (0...).lazy.map { "r\($0)" }.filter { DigestNode.leaf(of: Name($0)) == 9 }
        let chosen = Array(names.prefix(5))
        let others = (0..<40).map { "o\($0)" }
        try await space.send(author.packet(inserting: chosen + others))
        let leaves = Set(others.map { DigestNode.leaf(of: Name($0)) }).subtracting([9]).sorted()
        let asked = [9] + leaves
        let listed = try await space.listed(asked.map { DigestNode.leaf($0) })
        try require(
          listed.sorted(), is: (chosen + others).map { Name($0) }.sorted(), "the records listed")
        let again = try await space.listed([.leaf(leaves[0]), .leaf(9), .leaf(9)])
        try require(
          again.filter { chosen.contains($0.text) }.count, is: 10, "a leaf asked for twice")
      }
    },
    StoreContract("the list of tables continues in further answers") { under in
      var limits = Limits.standard
      limits.pageBytes = 300
      try await under.withSpace(limits: limits) { space in
        var author = Author(1)
        let tables = (10..<30).map { "t\($0)" }
        try await space.send(
          author.packet(tables.map { author.operation(.insert, "r", table: $0) }))
        let head = try await space.head()
        while try await space.store.foldDigests(in: space.space.id) < head {}
        let (found, answers) = try await space.tablesOfAnswers(at: head)
        try require(found.map(\.table), is: tables.map { Name($0) }, "the tables")
        try require(answers > 5, "\(answers) answers")
      }
    },
    StoreContract("digests are refused before they reach the cursor, and for a wrong cursor") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b"]))
        let epoch = space.space.epoch
        let query = DigestQuery(cursor: Cursor(epoch: epoch, applied: 2))
        let early = try await space.store.digests(in: space.space.id, query).get()
        try require(early.content, is: .behind, "digests that hold nothing")
        try require(early.head, is: 2, "the head")
        try require(
          try await space.store.foldDigests(in: space.space.id), is: 2, "what was folded")
        let tables = try await space.tables(at: 2)
        try require(tables.map(\.records), is: [2], "the records counted")
        try await space.send(author.packet(inserting: ["c"]))
        // A device without the third record compares the records it has.
        try require(try await space.tables(at: 2), is: tables, "the digests at the old cursor")
        for (cursor, code) in [
          (Cursor(epoch: Epoch(epoch.value ^ 1), applied: 2), ProblemCode.epochChanged),
          (Cursor(epoch: epoch, applied: 9), .cursorAhead),
        ] {
          let refused = try await space.store.digests(
            in: space.space.id, DigestQuery(cursor: cursor))
          guard case .failure(let problem) = refused else {
            throw ContractViolation(description: "cursor \(cursor) is answered")
          }
          try require(problem.code, is: code, "the problem")
        }
      }
    },
    StoreContract("a store never returns sums that miss another instance's folds") { under in
      guard under.isShared else { return }
      try await under.withSpace { space in
        let other = SpaceUnderTest(store: try await under.open(.standard), space: space.space)
        var author = Author(1)
        var random = SeededGenerator(seed: 3)
        for _ in 0..<5 {
          try await space.send(
            author.packet((0..<40).map { _ in author.anything(in: 30, using: &random) }))
          async let first = space.store.foldDigests(in: space.space.id)
          async let second = other.store.foldDigests(in: space.space.id)
          _ = try await (first, second)
          try await other.requireSums()
        }
        await other.store.close()
      }
    },
    StoreContract("a space with more records than one fold takes is folded in several folds") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        for part in 0..<11 {
          try await space.send(
            author.packet(inserting: (0..<500).map { "r\(part)-\($0)" }))
        }
        let first = try await space.store.foldDigests(in: space.space.id)
        try require(first, is: 5_000, "what the first fold took")
        try require(
          try await space.store.foldDigests(in: space.space.id), is: 5_500, "the second")
        try require(
          try await space.store.foldDigests(in: space.space.id), is: 5_500, "the third")
        try await space.requireSums()
      }
    },
  ]
}

extension Author {
  /// Returns an insert, update or delete of one of `count` records.
  fileprivate mutating func anything(
    in count: Int, using random: inout SeededGenerator
  ) -> SyncOperation {
    let table = random.next() % 3 == 0 ? "notes" : "tasks"
    let record = "r\(random.next() % UInt64(count))"
    let value = Value.integer(Int64(random.next() % 1_000))
    switch random.next() % 6 {
    case 0, 1: return operation(.insert, record, [Column("x", value)], table: table)
    case 2: return operation(.delete, record, table: table)
    case 3: return operation(.update, record, [Column("x", .null)], table: table)
    default: return operation(.update, record, [Column("y", value)], table: table)
    }
  }
}

extension SpaceUnderTest {
  /// Returns the sums of each table, from a reader's pull list.
  fileprivate func expectedSums() async throws -> [Name: DigestSums] {
    var hasher = RecordHasher()
    var sums: [Name: DigestSums] = [:]
    for (key, columns) in try await everything().records {
      let digest = hasher.digest(of: key, columns.map { Column($0.key, $0.value) })
      sums[key.table, default: DigestSums()].add(digest, to: DigestNode.leaf(of: key.record))
    }
    return sums
  }

  /// Folds all, and requires the tables' digests to be those of a reader's pull list.
  fileprivate func requireSums() async throws {
    let head = try await head()
    while try await store.foldDigests(in: space.id) < head {}
    let wanted = try await expectedSums().map { name, sums in
      DigestAnswer.TableDigest(table: name, records: sums.recordCount, digest: sums[.root])
    }
    try require(
      try await tables(at: head), is: wanted.sorted { $0.table < $1.table }, "the tables' digests")
  }

  fileprivate func tables(
    at applied: SequenceNumber
  ) async throws -> [DigestAnswer.TableDigest] {
    let query = DigestQuery(cursor: Cursor(epoch: space.epoch, applied: applied))
    let answer = try await store.digests(in: space.id, query).get()
    guard case .tables(let tables) = answer.content else {
      throw ContractViolation(description: "no tables but \(answer.content)")
    }
    return tables
  }

  /// Returns all tables, and the number of answers that contained them.
  fileprivate func tablesOfAnswers(
    at applied: SequenceNumber
  ) async throws -> ([DigestAnswer.TableDigest], answers: Int) {
    var query = DigestQuery(cursor: Cursor(epoch: space.epoch, applied: applied))
    var found: [DigestAnswer.TableDigest] = []
    for count in 1... {
      let answer = try await store.digests(in: space.id, query).get()
      guard case .tables(let tables) = answer.content else { break }
      found += tables
      guard answer.more else { return (found, count) }
      query.after = answer.content.lastName
    }
    throw ContractViolation(description: "no tables")
  }

  /// Returns the records of leaves, from as many answers as needed.
  fileprivate func listed(_ leaves: [DigestNode]) async throws -> [Name] {
    let head = try await head()
    while try await store.foldDigests(in: space.id) < head {}
    var query = DigestQuery(
      cursor: Cursor(epoch: space.epoch, applied: head), table: "tasks", nodes: leaves)
    var found: [Name] = []
    while !query.nodes.isEmpty {
      let answer = try await store.digests(in: space.id, query).get()
      guard case .nodes(let nodes) = answer.content else {
        throw ContractViolation(description: "no nodes but \(answer.content)")
      }
      try require(
        nodes.map(\.node), is: Array(query.nodes.prefix(nodes.count)), "the nodes answered")
      var count = 0
      for node in nodes {
        guard case .records(let records) = node.digests else { continue }
        found += records.map(\.record)
        count += records.count
      }
      try require(count <= 3, "\(count) records in one answer")
      query.nodes.removeFirst(answer.more ? nodes.count - 1 : nodes.count)
      query.after = answer.more ? answer.content.lastName : nil
    }
    return found
  }

  fileprivate func nodes(_ nodes: [DigestNode]) async throws -> [DigestAnswer.Node] {
    let head = try await head()
    while try await store.foldDigests(in: space.id) < head {}
    let query = DigestQuery(
      cursor: Cursor(epoch: space.epoch, applied: head), table: "tasks", nodes: nodes)
    let answer = try await store.digests(in: space.id, query).get()
    guard case .nodes(let answered) = answer.content else {
      throw ContractViolation(description: "no nodes but \(answer.content)")
    }
    return answered
  }
}
