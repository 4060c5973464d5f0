import FerryProtocol

/// An update of the sums of the hash trees with some records; pure.
///
/// It runs when a client asks for digests, never while packets are applied. It needs no lock that a
/// writer waits for: a record that changes again meanwhile comes again at its new sequence.
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

  /// Whether another record may be added to the transaction.
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
  ///   - digests: Reads the digests below a node of the table.
  func answer(
    in space: SpaceSnapshot, folded: SequenceNumber?,
    tables: () throws -> [DigestAnswer.TableDigest], digests: (DigestNode) throws -> NodeDigests
  ) rethrows -> Result<DigestAnswer, Problem> {
    if let fault = PageBuilder.fault(in: asPull, space) { return .failure(fault) }
    let folded = max(0, folded ?? 0)
    var answer = DigestAnswer(
      epoch: space.epoch, head: space.head, folded: folded, content: .behind)
    if folded < cursor.applied { return .success(answer) }
    if table == nil {
      answer.content = .tables(try tables())
      return .success(answer)
    }
    var answered: [DigestAnswer.Node] = []
    var bytes = 0
    for node in nodes where bytes < Self.answerBytesMax {
      let digests = try digests(node)
      bytes += digests.byteCount
      answered.append(DigestAnswer.Node(node: node, digests: digests))
    }
    answer.content = .nodes(answered)
    return .success(answer)
  }
}

/// A builder of tables' digests from leaves' sums, which come in the order of tables' bytes.
struct TableDigestBuilder {
  private(set) var tables: [DigestAnswer.TableDigest] = []
  private var name: Name?
  private var sum = DigestFold.LeafSum()

  mutating func add(table: UnsafeRawBufferPointer, digest: Digest, records: Int64) {
    if name.map({ !$0.utf8.elementsEqual(table) }) ?? true {
      close()
      name = Name(String(decoding: table, as: UTF8.self))
    }
    sum.digest += digest
    sum.records += records
  }

  mutating func close() {
    guard let name else { return }
    tables.append(
      DigestAnswer.TableDigest(table: name, records: Int(sum.records), digest: sum.digest))
    self.name = nil
    sum = DigestFold.LeafSum()
  }
}

extension DigestNode {
  /// Returns the child of this node that is above a leaf.
  func child(of leaf: Int) -> Int { leaf >> (4 * (Self.depthMax - depth - 1)) & 0xF }
}

extension DigestQuery {
  /// Bytes of an answer after which no further node is added.
  static let answerBytesMax = 4 << 20

  /// The pull that has the same cursor, which is checked in the same way.
  var asPull: PullRequest {
    PullRequest(cursor: cursor, limit: 1, byteLimit: 1, device: nil)
  }
}

extension NodeDigests {
  /// About how many bytes it takes in an answer.
  var byteCount: Int {
    switch self {
    case .children(let children): 40 + children.count * 35
    case .records(let records): records.reduce(40) { $0 + $1.record.utf8.count + 40 }
    }
  }
}
