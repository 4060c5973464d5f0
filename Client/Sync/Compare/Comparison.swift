import FerryPersistence
import FerryProtocol
import FerrySQLite

/// Compares a replica with its space. Reads all rows, compares hash trees from their roots down,
/// and fetches each record that may differ (SPEC.md §16). Three uses decide about the records: a
/// report, a check after a repair, and unrecorded writes (``Reconciliation``).
///
/// The point of comparison is the cursor after a pull; it does not move while the sync lock is
/// held. Later writes of others make nodes differ. A report skips such records, because their
/// sequence is above the cursor. So it ends however busy the server is.
struct Comparison: Sendable {
  let engine: SyncEngine
  let source: RowSource
  let api: VerifyAPI
  let cursor: Cursor
  let progress: @Sendable (VerifyProgress) -> Void

  /// The number of leaves with records in memory at once.
  private static let leavesAtOnce = 4_096
  /// The number of leaves in one request.
  private static let leavesPerRequest = 64

  // MARK: Records

  /// The records to look at.
  enum Selection {
    /// Records that may differ and have no pending operations.
    case settled
    /// These, and all records with pending operations, also those edited by the user meanwhile.
    case all
  }

  /// Calls `body` with records that may differ, a limited number at a time, each once.
  ///
  /// - Returns: The number of rows read.
  func forEachSuspect(
    of root: DigestAnswer.TableDigest, _ selection: Selection,
    _ report: inout VerifyReport,
    _ body: ([RecordKey], inout VerifyReport) async throws -> Void
  ) async throws -> Int {
    let (sums, pending) = try await scan(root.table) { scan in
      let sums = try scan.sums {
        progress(VerifyProgress(phase: .reading, completed: $0, total: max($0, root.records)))
      }
      return (sums, scan.pending)
    }
    report.pending += pending.count
    if selection == .all { try await body(pending.sorted(), &report) }
    let leaves = try await leaves(of: root, sums, &report)
    var start = 0
    while start < leaves.count {
      let part = Array(leaves[start..<min(start + Self.leavesAtOnce, leaves.count)])
      let found = try await suspects(in: part, of: root.table, selection, &report)
      try await body(selection == .all ? found.filter { !pending.contains($0) } : found, &report)
      start += part.count
    }
    return sums.recordCount
  }

  private func leaves(
    of root: DigestAnswer.TableDigest, _ sums: DigestSums, _ report: inout VerifyReport
  ) async throws -> [Int] {
    var descent = DigestDescent(ours: sums, theirs: root.digest)
    var list = DigestList()
    while !descent.isDone {
      let questions = descent.questions(limit: DigestQuery.nodesMax)
      let nodes = try await nodes(questions, of: root.table, &report, &list)
      descent.apply(
        nodes.compactMap { node in
          if case .children(let children) = node.digests { (node.node, children) } else { nil }
        })
    }
    return descent.leaves
  }

  /// Returns records that may differ.
  private func suspects(
    in leaves: [Int], of table: Name, _ selection: Selection, _ report: inout VerifyReport
  ) async throws -> [RecordKey] {
    let wanted = Set(leaves)
    let (ours, pending) = try await scan(table) { (try $0.digests(of: wanted), $0.pending) }
    var theirs: [RecordKey: Digest] = [:]
    var waiting = leaves[...]
    var list = DigestList()
    while !waiting.isEmpty {
      let asked = waiting.prefix(Self.leavesPerRequest).map { DigestNode.leaf($0) }
      let nodes = try await nodes(asked, of: table, &report, &list)
      for node in nodes {
        guard case .records(let records) = node.digests else { continue }
        for record in records {
          theirs[RecordKey(table: table, record: record.record)] = record.digest
        }
      }
      waiting = waiting.dropFirst(list.after == nil ? nodes.count : nodes.count - 1)
      progress(
        VerifyProgress(
          phase: .comparing, completed: leaves.count - waiting.count, total: leaves.count))
    }
    let settled = LeafComparison.differing(ours: ours, theirs: theirs)
      .filter { !pending.contains($0) }
    if selection == .settled { return settled }
    return settled + pending.filter { wanted.contains(DigestNode.leaf(of: $0.record)) }.sorted()
  }

  /// Fetches records, and passes them to `body` as the server has them, a limited number at a time.
  ///
  /// - Returns: The records with names that no server accepts. They are not fetched.
  @discardableResult
  func fetch(
    _ keys: [RecordKey], _ report: inout VerifyReport,
    _ body: ([Change], inout VerifyReport) async throws -> Void
  ) async throws -> [RecordKey] {
    var unusable: [RecordKey] = []
    var waiting: ArraySlice<RecordKey> = []
    for key in keys {
      if NameRule.fault(inRecord: key.record, limits: engine.limits) == nil {
        waiting.append(key)
      } else {
        unusable.append(key)
      }
    }
    while !waiting.isEmpty { try await body(try await records(&waiting, &report), &report) }
    return unusable
  }

  /// Removes the next records from the list, and returns them as the server has them.
  private func records(
    _ waiting: inout ArraySlice<RecordKey>, _ report: inout VerifyReport
  ) async throws -> [Change] {
    let keys = Array(waiting.prefix(engine.limits.recordsPerRequest))
    let (changes, traffic) = try await engine.retrying { try await api.records(keys) }
    report.add(traffic)
    guard !changes.isEmpty, changes.count <= keys.count,
      zip(keys, changes).allSatisfy({ $0 == $1.key })
    else {
      throw ReplicaError.unexpectedAnswer(status: 200, "records that Ferry did not request")
    }
    waiting = waiting.dropFirst(changes.count)
    return changes
  }

  // MARK: Reading

  func scan<T: Sendable>(
    _ table: Name, _ body: @escaping @Sendable (TableScan) throws -> T
  ) async throws -> T {
    let limits = engine.limits
    return try await source.read { try body(TableScan(table, on: $0, limits: limits)) }
  }

  func tables(
    _ report: inout VerifyReport
  ) async throws -> [DigestAnswer.TableDigest] {
    var found: [DigestAnswer.TableDigest] = []
    var list = DigestList()
    repeat {
      let query = DigestQuery(cursor: cursor, after: list.after)
      guard case .tables(let tables) = try await ask(query, &report, &list) else {
        throw ReplicaError.unexpectedAnswer(status: 200, "no digests of tables")
      }
      found += tables
    } while list.after != nil
    return found
  }

  private func nodes(
    _ nodes: [DigestNode], of table: Name, _ report: inout VerifyReport, _ list: inout DigestList
  ) async throws -> [DigestAnswer.Node] {
    let query = DigestQuery(cursor: cursor, table: table, nodes: nodes, after: list.after)
    guard case .nodes(let answers) = try await ask(query, &report, &list), !answers.isEmpty,
      answers.map(\.node) == Array(nodes.prefix(answers.count))
    else { throw ReplicaError.unexpectedAnswer(status: 200, "digests that Ferry did not request") }
    return answers
  }

  /// Repeats a request until the server's sums reach the cursor.
  private func ask(
    _ query: DigestQuery, _ report: inout VerifyReport, _ list: inout DigestList
  ) async throws -> DigestAnswer.Content {
    // Each answer reports the sums of at least some records; a space has not so many of them.
    var sums = ListBound(smallPagesMax: 10_000)
    while true {
      let (answer, traffic) = try await engine.retrying { try await api.digests(query) }
      report.add(traffic)
      guard answer.content == .behind else {
        try list.accept(answer, bytes: traffic.received)
        return answer.content
      }
      if let fault = sums.accept(
        reached: answer.folded, head: cursor.applied, bytes: traffic.received)
      {
        throw ReplicaError(digests: fault)
      }
      progress(
        VerifyProgress(
          phase: .summing, completed: Int(clamping: answer.folded),
          total: Int(clamping: cursor.applied)))
    }
  }
}

extension VerifyReport {
  fileprivate mutating func add(_ traffic: VerifyAPI.Traffic) {
    bytesSent += traffic.sent
    bytesReceived += traffic.received
  }
}
