import FerryProtocol
import Networking

/// One file on its way: what is there of it, what is under way, and what has been told.
///
/// It turns what happens into the plan's and the decision's terms and carries out what they say.
/// Whoever awaits here must expect that everything has moved on meanwhile.
actor DownloadSession {
  nonisolated let job: DownloadJob
  nonisolated let file: PartialFile
  nonisolated let layout: PartialLayout
  nonisolated let surroundings: DownloadSurroundings
  private let tell: @Sendable (DownloadProgress) -> Void

  var plan: ChunkPlan
  var map: ChunkMap
  /// Why the download has failed.
  private(set) var failure: DownloadError?
  /// Bytes that came over the network.
  private(set) var fetched: Int64 = 0
  /// So few bytes between two failures are no progress worth the name.
  private static let littleBytes: Int64 = 4_096
  /// Bytes that had come when a request last failed in a way that may pass.
  private var fetchedAtFailure: Int64 = -1
  /// Bytes that were there, here or in other files.
  var reused: Int64 = 0
  /// The most bytes that ever were there.
  private(set) var highest: Int64 = 0

  private var gauge: ProgressGauge
  private var rule: RecordRule
  private var startOvers = 0
  private var isDue = false
  /// Tasks that wait for anything to change.
  private var waiters: [CheckedContinuation<Void, Never>] = []

  init(
    _ job: DownloadJob, file: PartialFile, layout: PartialLayout, settings: DownloadSettings,
    surroundings: DownloadSurroundings, tell: @escaping @Sendable (DownloadProgress) -> Void
  ) {
    self.job = job
    self.file = file
    self.layout = layout
    self.surroundings = surroundings
    self.tell = tell
    var bounds = ChunkPlan.Bounds()
    bounds.connections = max(1, settings.connections)
    bounds.rangeBytes = settings.rangeBytes
    bounds.wholeBytes = settings.wholeBytes
    plan = ChunkPlan(size: job.size, chunkSize: layout.chunkSize, bounds: bounds)
    map =
      job.map.chunkCount == job.chunks.count ? job.map : ChunkMap(chunkCount: job.chunks.count)
    gauge = ProgressGauge(total: job.size)
    rule = RecordRule(bytes: 0, now: surroundings.steadyClock())
  }

  /// Whether chunks have hashes of their own; where they have none, the file is one chunk.
  nonisolated var checksChunks: Bool { !job.chunks.isEmpty }

  /// What a chunk has to be.
  nonisolated func hash(of chunk: Int) -> ContentHash {
    checksChunks ? job.chunks[chunk] : job.hash
  }

  // MARK: Work

  /// The next request to make; waits while others may leave something, nil when all is over.
  func next() async -> FetchRange? {
    while failure == nil, !plan.isComplete {
      if Task.isCancelled { fail(.cancelled) }
      if failure == nil, let range = plan.next() { return range }
      if failure == nil { await change() }
    }
    return nil
  }

  /// A request is over; what it left open is for the next one.
  func ended(_ range: FetchRange) async throws(DownloadError) {
    plan.ended(range)
    if !checksChunks, map.validator == nil, plan.kept(of: 0) > 0 { try await forgetPrefix() }
    wake()
  }

  /// A request failed in a way that may pass, and will be made again: tells of it where nothing has
  /// come since the failure before.
  func failed(_ error: DownloadError) async {
    // A server that sends a byte now and then is as good as silent.
    let isStill = fetchedAtFailure >= 0 && fetched - fetchedAtFailure < Self.littleBytes
    fetchedAtFailure = fetched
    if isStill { await job.stalled(error) }
  }

  /// Nothing goes on after this; the first failure counts.
  func fail(_ error: DownloadError) {
    if failure == nil { failure = error }
    wake()
  }

  /// Waits until more than `position` bytes from the start are there; nil when no more will be.
  func front(beyond position: Int64) async -> Int64? {
    while plan.frontBytes <= position {
      if failure != nil || plan.isComplete { return nil }
      await change()
    }
    return failure == nil ? plan.frontBytes : nil
  }

  /// Waits until the map should be recorded; false when all is over.
  func waitForRecord() async -> Bool {
    while failure == nil, !plan.isComplete {
      if isDue {
        isDue = false
        return true
      }
      await change()
    }
    return false
  }

  private func change() async { await withCheckedContinuation { waiters.append($0) } }

  private func wake() {
    let waiting = waiters
    waiters = []
    for waiter in waiting { waiter.resume() }
  }

  // MARK: Answers

  /// What to ask a range's request for.
  func ask(_ range: FetchRange) -> TransferAsk {
    let isInside = !checksChunks && range.bytes.lowerBound > 0
    return TransferAsk(
      bytes: range.bytes, size: job.size, hasRange: range.hasRange,
      validator: isInside ? map.validator.map(TransferValidator.init(kept:)) : nil,
      checksChunks: checksChunks, isDecoded: plan.way == .decoded)
  }

  /// What becomes of an answer: the bytes of the file that its body is, or the request's end.
  ///
  /// `range` becomes the whole file where the answer is that, and nobody else is under way.
  func judge(
    _ head: AnswerHead, to ask: TransferAsk, _ range: inout FetchRange
  ) async throws(DownloadError) -> Verdict {
    switch ResumeDecision(head, to: ask, now: surroundings.wallClock()) {
    case .take(let bytes):
      if range.hasRange { plan.rangesWork() }
      wake()
      try await begin(head, at: bytes.lowerBound)
      return .take(bytes)
    case .takeWhole:
      guard let whole = plan.widen(range) else { return .end(.done) }
      range = whole
      try await begin(head, at: 0)
      return .take(0..<job.size)
    case .startOver(let error):
      startOvers += 1
      if startOvers > plan.bounds.tries { throw error }
      try await forgetPrefix()
      return .end(.done)
    case .change(let way, _):
      plan.change(to: way)
      return .end(.done)
    case .tryAgain(let error, let wish):
      return .end(.again(error, after: wish))
    case .giveUp(let error):
      throw error
    }
  }

  /// Notes which version comes, before any byte of it takes another one's place.
  private func begin(_ head: AnswerHead, at start: Int64) async throws(DownloadError) {
    guard !checksChunks, start == 0 else { return }
    try await forgetPrefix()
    map.validator = TransferValidator(head.headers)?.text
    if layout.hasMarks { try await record() }
  }

  /// Forgets the part that is there of a file without chunks.
  func forgetPrefix() async throws(DownloadError) {
    plan.keep(0, of: 0)
    let wasThere = map.prefixBytes > 0 || map.validator != nil
    map.clear()
    try await file.mark(0, 0)
    if wasThere { try await record() }
  }

  // MARK: Content

  /// Whether a request's answer is to be written where this chunk is.
  func wants(_ chunk: Int, by range: FetchRange) -> Bool { plan.isWanted(chunk, by: range) }

  /// Bytes came, and `kept` from the chunk's start are in the file now; 0 for bytes left out.
  func received(_ count: Int, _ chunk: Int, kept: Int64) {
    fetched += Int64(count)
    if kept > 0 { plan.keep(kept, of: chunk) }
    moved()
  }

  /// A chunk has come to its end: it is right and there, or it is to be fetched again.
  ///
  /// Throws kind `wrongContent` when it has been wrong too often.
  func checked(_ chunk: Int, _ digest: [UInt8], isWhole: Bool) async throws(DownloadError) {
    let isRight = digest == hash(of: chunk).bytes
    if isRight || PlantedFault.chunkUnchecked.isPlanted { return verified(chunk) }
    let mayTry = plan.failed(chunk, isWhole: isWhole)
    if !checksChunks { try await forgetPrefix() }
    guard mayTry else {
      let what = checksChunks ? "chunk \(chunk) of the file" : "the file"
      throw DownloadError(
        .wrongContent(chunk: checksChunks ? chunk : nil),
        "\(what) has another SHA-256 than the manifest says")
    }
    wake()
  }

  /// A chunk is there and right.
  func verified(_ chunk: Int) {
    plan.verified(chunk)
    if checksChunks { map[chunk] = true }
    moved()
    wake()
  }

  /// Tells of progress, and has the map recorded when that is due.
  func moved() {
    let bytes = plan.bytesVerified + plan.bytesKept
    highest = max(highest, bytes)
    if let progress = gauge.move(to: bytes, fetched: fetched) { tell(progress) }
    let lasting = checksChunks ? plan.bytesVerified : bytes
    if layout.hasMarks, rule.isDue(bytes: lasting, now: surroundings.steadyClock()) {
      isDue = true
      wake()
    }
  }

  /// Records the map: of a file without chunks only what is on the disk, since nothing but the end
  /// will prove it.
  func record() async throws(DownloadError) {
    if !checksChunks {
      let (kept, validator) = (plan.kept(of: 0), map.validator)
      if kept > 0 { try await file.synchronise() }
      if map.validator == validator, plan.kept(of: 0) >= kept { map.prefixBytes = kept }
    }
    do {
      try await job.record(map)
    } catch {
      throw DownloadError(.file, "what is there cannot be recorded: \(error)")
    }
  }
}

/// What becomes of an answer.
enum Verdict {
  case take(Range<Int64>)
  case end(FetchEnd)
}

/// How a request ended that is no reason to give up.
enum FetchEnd: Sendable {
  /// As it should.
  case done
  /// To be tried again, at the earliest after the time that the server asked for.
  case again(DownloadError, after: Duration?)
}

extension DownloadError {
  static let cancelled = DownloadError(.cancelled, "the download was cancelled")

  /// What a transport failed with.
  init(_ error: TransportError) {
    switch error.kind {
    case .offline, .timedOut, .interrupted: self.init(.offline, error.message)
    case .secureConnectionFailed: self.init(.offline, error.message, isTransient: false)
    case .cancelled: self.init(.cancelled, error.message)
    case .fileFailed: self.init(.file, error.message)
    case .badAddress, .redirectRefused, .responseTooLarge, .other:
      self.init(.wrongAnswer, error.message)
    }
  }
}
