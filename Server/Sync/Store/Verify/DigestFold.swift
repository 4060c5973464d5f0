import FerryProtocol

/// An update of the sums of the hash trees with some records; pure.
///
/// It runs when a client asks for digests, never while packets are applied. It needs no lock of a
/// writer: a record changed again meanwhile comes again at its new sequence.
package struct DigestFold {
  /// Records in one transaction, and the bytes of their states.
  package static let recordsMax = 5_000
  package static let bytesMax = 16 << 20

  /// A record as a reader sees it now.
  struct Item: Equatable {
    let key: RecordKey
    let leaf: Int
    /// `nil` if there is nothing to see.
    let digest: Digest?
  }

  /// A leaf of a table.
  struct LeafKey: Hashable, Comparable {
    let table: Name
    let leaf: Int

    // By bytes, as in every key of a store.
    static func == (left: LeafKey, right: LeafKey) -> Bool {
      left.leaf == right.leaf && left.table == right.table
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(leaf)
      table.hash(into: &hasher)
    }

    static func < (left: LeafKey, right: LeafKey) -> Bool {
      if left.leaf != right.leaf { return left.leaf < right.leaf }
      return left.table < right.table
    }
  }

  struct LeafSum: Equatable {
    var digest = Digest.zero
    var records: Int64 = 0
  }

  /// The rows to write.
  struct Effects: Equatable {
    /// Records whose digest has changed.
    var changed: [Item] = []
    /// The new sums of their leaves, in the keys' order; one without records is to be removed.
    var leaves: [(key: LeafKey, sum: LeafSum)] = []

    static func == (left: Effects, right: Effects) -> Bool {
      left.changed == right.changed && left.leaves.elementsEqual(right.leaves, by: ==)
    }
  }

  private var hasher = RecordHasher()
  private(set) var items: [Item] = []
  /// The last record's sequence; `nil` before the first one.
  private(set) var last: SequenceNumber?
  private var byteCount = 0

  init() {}

  /// True if another record may be added to the transaction.
  var hasRoom: Bool { items.count < Self.recordsMax && byteCount < Self.bytesMax }

  /// The leaves of the records added, each once, in order.
  var leaves: [LeafKey] {
    Set(items.map { LeafKey(table: $0.key.table, leaf: $0.leaf) }).sorted()
  }

  /// Adds a record in the order of sequences.
  mutating func add(
    sequence: SequenceNumber, _ key: RecordKey, state: UnsafeRawBufferPointer
  ) throws(MalformedMessage) {
    let stored = try RecordState(stored: state, limits: .stored)
    items.append(
      Item(
        key: key, leaf: key.record.withBytes { DigestNode.leaf(of: $0) },
        digest: Digest(of: key, stored, with: &hasher)))
    byteCount += state.count
    last = sequence
  }

  /// Returns the sequence up to which the sums hold every change with these records.
  ///
  /// - Parameters:
  ///   - before: The same without them.
  ///   - newest: The last changed record's sequence, from the same snapshot as the head.
  func reached(
    from before: SequenceNumber, head: SequenceNumber, newest: SequenceNumber
  ) -> SequenceNumber {
    let last = last ?? before
    return last >= newest ? max(head, last) : last
  }

  /// Returns the changes, from the digests of these records in the sums and the sums themselves.
  func effects(known: [RecordKey: Digest], sums: [LeafKey: LeafSum]) -> Effects {
    var effects = Effects()
    var sums = sums
    var touched = Set<LeafKey>()
    for item in items where known[item.key] != item.digest {
      effects.changed.append(item)
      let leaf = LeafKey(table: item.key.table, leaf: item.leaf)
      touched.insert(leaf)
      var sum = sums[leaf] ?? LeafSum()
      if let old = known[item.key] {
        sum.digest -= old
        sum.records -= 1
      }
      if let new = item.digest {
        sum.digest += new
        sum.records += 1
      }
      sums[leaf] = sum
    }
    effects.leaves = touched.sorted().map { ($0, sums[$0] ?? LeafSum()) }
    return effects
  }
}

extension DigestQuery {
  /// Returns the answer from one snapshot of a space.
  ///
  /// - Parameters:
  ///   - folded: The sums hold every change up to here. `nil` or negative if they have to be summed
  ///     up from scratch.
  ///   - limits: Bound the records and the bytes of an answer.
  ///   - tables: Reads the tables after ``after``, and whether there may be more.
  ///   - digests: Reads the digests below a node of the table.
  func answer(
    in space: SpaceSnapshot, folded: SequenceNumber?, _ limits: Limits,
    tables: () throws -> (tables: [DigestAnswer.TableDigest], more: Bool),
    digests: (Part) throws -> NodeDigests
  ) rethrows -> Result<DigestAnswer, Problem> {
    if let fault = PageBuilder.fault(in: asPull, space) { return .failure(fault) }
    let folded = max(0, folded ?? 0)
    var answer = DigestAnswer(
      epoch: space.epoch, head: space.head, folded: folded, content: .behind)
    if folded < cursor.applied { return .success(answer) }
    if table == nil {
      let found = try tables()
      let fitting = found.tables.first(within: limits.pageBytes) { $0.byteCount }
      answer.content = .tables(fitting)
      answer.more = found.more || fitting.count < found.tables.count
      return .success(answer)
    }
    (answer.content, answer.more) = try answers(limits, digests)
    return .success(answer)
  }

  /// Returns the nodes that fit, and `true` if the last one's records continue.
  private func answers(
    _ limits: Limits, _ digests: (Part) throws -> NodeDigests
  ) rethrows -> (DigestAnswer.Content, more: Bool) {
    var answered: [DigestAnswer.Node] = []
    var (bytes, listed, more) = (0, 0, false)
    for (place, node) in nodes.enumerated() {
      let room = limits.digestsPerAnswer - listed
      guard !more, room > 0, bytes < limits.pageBytes else { break }
      var digests = try digests(
        Part(place: place, node: node, after: place == 0 ? after : nil, room: room))
      if case .records(let records) = digests {
        let fitting = records.first(within: limits.pageBytes - bytes) { $0.byteCount }
        more = fitting.count < records.count || records.count >= room
        listed += fitting.count
        digests = .records(fitting)
      }
      bytes += digests.byteCount
      answered.append(DigestAnswer.Node(node: node, digests: digests))
    }
    return (.nodes(answered), more)
  }

  /// A node of a query.
  struct Part: Equatable {
    /// The place in the query.
    let place: Int
    let node: DigestNode
    /// The record after which a leaf continues.
    let after: Name?
    /// The most records.
    let room: Int
  }
}

extension Array {
  /// Returns the first elements that fit into so many bytes, one at least.
  fileprivate func first(within bytes: Int, _ size: (Element) -> Int) -> [Element] {
    var left = bytes
    let end = indices.first { index in
      left -= size(self[index])
      return left < 0 && index > 0
    }
    return end.map { Array(self[..<$0]) } ?? self
  }
}

/// A builder of tables' digests from leaves' sums, which come in the order of tables' bytes.
struct TableDigestBuilder {
  /// Sums of leaves read for one answer: those of three whole tables at least.
  static let sumsMax = 4 * DigestNode.leafCount

  private(set) var tables: [DigestAnswer.TableDigest] = []
  private var sums = 0
  private var name: Name?
  private var sum = DigestFold.LeafSum()

  mutating func add(table: UnsafeRawBufferPointer, digest: Digest, records: Int64) {
    if name.map({ !$0.utf8.elementsEqual(table) }) ?? true {
      close()
      name = Name(String(decoding: table, as: UTF8.self))
    }
    sum.digest += digest
    sum.records += records
    sums += 1
  }

  /// Returns the tables, and whether there may be more. The last table may lack sums then, and is
  /// left to the next answer.
  consuming func finish(
    sumsMax: Int = Self.sumsMax
  ) -> (tables: [DigestAnswer.TableDigest], more: Bool) {
    let isCut = sums >= sumsMax
    if !isCut { close() }
    return (tables, isCut)
  }

  private mutating func close() {
    guard let name else { return }
    tables.append(
      DigestAnswer.TableDigest(table: name, records: Int(sum.records), digest: sum.digest))
    self.name = nil
    sum = DigestFold.LeafSum()
  }
}

extension DigestNode {
  /// Returns the child of this node above a leaf.
  func child(of leaf: Int) -> Int { leaf >> (4 * (Self.depthMax - depth - 1)) & 0xF }
}

extension DigestQuery {
  /// The pull with the same cursor, checked in the same way.
  var asPull: PullRequest {
    PullRequest(cursor: cursor, limit: 1, byteLimit: 1, device: nil)
  }
}

extension NodeDigests {
  /// About how many bytes it takes in an answer.
  var byteCount: Int {
    switch self {
    case .children(let children): 40 + children.count * 35
    case .records(let records): records.reduce(40) { $0 + $1.byteCount }
    }
  }
}

extension NodeDigests.RecordDigest {
  /// The bytes in an answer.
  var byteCount: Int { record.jsonBytes + 40 }
}

extension DigestAnswer.TableDigest {
  /// The bytes in an answer, at most.
  var byteCount: Int { table.jsonBytes + 100 }
}

extension Name {
  /// The bytes in JSON.
  fileprivate var jsonBytes: Int {
    utf8.reduce(2) { $0 + ($1 < 0x20 ? 6 : $1 == 0x22 || $1 == 0x5C ? 2 : 1) }
  }
}
