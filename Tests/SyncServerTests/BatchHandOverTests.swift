import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The matches of batch operations between a store's transactions, by the machine alone.
@Suite(.hangLimit)
struct BatchHandOverTests {
  static let operation = OperationID(UniqueID(high: 0, low: 3))
  static let origin = HistoryOrigin(
    SpaceState(epoch: Epoch(7), head: 3, newest: operation, historyHash: 5))

  static func context(head: SequenceNumber, historyHash: UInt64 = 6) -> IngestContext {
    let space = SpaceState(
      epoch: Epoch(7), head: head, newest: OperationID(UniqueID(high: 0, low: UInt64(head))),
      historyHash: historyHash)
    return IngestContext(space: space, now: 1, limits: .standard, quotas: .standard)
  }

  static func matcher(in context: IngestContext) -> BatchMatcher {
    BatchMatcher(IngestPlan(), of: [], in: context)
  }

  /// Returns the place after which records are looked at again; `nil` if none are.
  static func handOver(
    _ matches: BatchMatches, head: SequenceNumber, historyHash: UInt64 = 6, place: HistoryPlace?
  ) throws -> SequenceNumber? {
    var context = context(head: head, historyHash: historyHash)
    var looked: SequenceNumber?
    try matcher(in: context).handOver(matches, to: &context) { id in
      #expect(id == operation)
      return place
    } changed: { head, _ in
      looked = head
    } load: { keys, _ in
      #expect(keys.isEmpty)
    }
    return looked
  }

  @Test("records that changed since the matches were found are looked at again")
  func changed() throws {
    let place = HistoryPlace(sequence: 3, historyHash: 5)
    let matches = BatchMatches(since: Self.origin)
    #expect(try Self.handOver(matches, head: 9, place: place) == 3)
    #expect(try Self.handOver(matches, head: 3, historyHash: 5, place: place) == nil)
  }

  @Test(
    "matches from another history are looked for again",
    arguments: [nil, HistoryPlace(sequence: 2, historyHash: 5), .init(sequence: 3, historyHash: 4)])
  func lost(place: HistoryPlace?) throws {
    let failure = #expect(throws: BatchesToMatch.self) {
      _ = try Self.handOver(BatchMatches(since: Self.origin), head: 9, place: place)
    }
    let wanted = try #require(failure)
    #expect(wanted.origin == HistoryOrigin(Self.context(head: 9).space))
    #expect(wanted.kept == BatchMatches())
  }

  /// Repeats attempts of which the first `lacking` need matches.
  static func repeated(lacking: Int) async throws -> (attempts: Int, head: SequenceNumber) {
    var attempts = 0
    let (before, batch) = try await IngestAttempt.repeated {
      (matches) async throws(StoreError) -> IngestAttempt in
      attempts += 1
      #expect((matches.origin == nil) == (attempts == 1))
      if attempts > lacking {
        return .done(before: 3, IngestBatch(head: 4, epoch: Epoch(7), results: []))
      }
      return .needsMatches(
        BatchesToMatch(
          matcher: matcher(in: context(head: 3)), origin: origin, kept: BatchMatches()))
    } slice: { (_) async throws(StoreError) in
      throw .failed("there are no records to show")
    }
    #expect(before == 3)
    return (attempts, batch.head)
  }

  @Test("packets are applied as soon as their matches are known", arguments: [0, 1, 7])
  func repeats(lacking: Int) async throws {
    let (attempts, head) = try await Self.repeated(lacking: lacking)
    #expect(attempts == lacking + 1 && head == 4)
  }

  @Test("a space whose other writers are faster is busy after 8 attempts")
  func busy() async {
    let failure = await #expect(throws: StoreError.self) { try await Self.repeated(lacking: 8) }
    guard case .busy? = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
  }
}
