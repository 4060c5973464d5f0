/// Decides which parts of a file are still to be fetched, and in which requests.
///
/// A pure machine: the fetching code asks for the next range, and reports the result. A file with
/// only one hash is one chunk here; it grows from the start.
struct ChunkPlan {
  /// The kind of requests. It only ever changes to a later case, so the changes come to an end.
  enum Way: Int, Comparable, Sendable {
    /// Ranges over several connections.
    case parallel
    /// One range at a time: the server answered a range with the whole file.
    case single
    /// The whole file without a range: the server's ranges are wrong.
    case whole
    /// The whole file, encoded for the transfer: the server encodes without a request for it, so
    /// the transport requests encodings it can decode.
    case decoded

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// The limits of requests.
  struct Bounds: Equatable, Sendable {
    /// The number of concurrent requests.
    var connections = 4
    /// The bytes of a range.
    var rangeBytes: Int64 = 32 << 20
    /// A file up to this size, in bytes, is requested without a range.
    var wholeBytes: Int64 = 8 << 20
    /// How often a chunk's content may be wrong before the download fails.
    var tries = 3
  }

  /// The state of a chunk. A chunk under way belongs to one request: no other one writes or
  /// releases it.
  private enum State: Equatable { case missing, fetching(by: Int), verified }

  /// Bytes of the file.
  let size: Int64
  /// Bytes of each chunk but the last.
  let chunkSize: Int64
  let bounds: Bounds
  private(set) var way = Way.parallel
  /// The bytes of all verified chunks.
  private(set) var bytesVerified: Int64 = 0
  /// The bytes of partly fetched chunks.
  private(set) var bytesKept: Int64 = 0
  /// The number of current requests.
  private(set) var active = 0
  /// The number of requests so far.
  private var requests = 0
  /// The number of verified chunks from the start without a gap.
  private(set) var front = 0

  private var states: [State]
  private var kept: [Int: Int64] = [:]
  private var failures: [Int: Int] = [:]
  private var excused: Set<Int> = []
  /// All chunks before this one are fetched or under way.
  private var scan = 0
  /// True after a first answer has shown that ranges work.
  private var isProven = false

  /// Creates a plan for a file without any part here.
  init(size: Int64, chunkSize: Int64, bounds: Bounds = Bounds()) {
    precondition(size >= 0 && chunkSize > 0, "a file has 0 bytes or more, a chunk one or more")
    self.size = size
    self.chunkSize = chunkSize
    self.bounds = bounds
    states = Array(
      repeating: .missing, count: Int(size / chunkSize) + (size % chunkSize > 0 ? 1 : 0))
  }

  var chunkCount: Int { states.count }

  /// True if every chunk is verified.
  var isComplete: Bool { bytesVerified == size }

  /// The verified bytes from the start without a gap.
  var frontBytes: Int64 { min(Int64(front) * chunkSize, size) }

  /// Returns a chunk's bytes in the file.
  func bytes(of chunk: Int) -> Range<Int64> {
    let start = Int64(chunk) * chunkSize
    return start..<min(start + chunkSize, size)
  }

  /// Returns true if a request should fetch this chunk: not if it is here already, or belongs to
  /// another request.
  func isWanted(_ chunk: Int, by range: FetchRange) -> Bool {
    states[chunk] == .fetching(by: range.id)
  }

  /// Returns the unverified local bytes from a chunk's start.
  func kept(of chunk: Int) -> Int64 { kept[chunk] ?? 0 }

  /// Chunks neither here nor under way, in order.
  var missing: [Int] { states.indices.filter { states[$0] == .missing } }
}

// The fetched parts.
extension ChunkPlan {
  /// Records a verified chunk.
  mutating func verified(_ chunk: Int) {
    guard states[chunk] != .verified else { return }
    recordBytes(0, of: chunk)
    states[chunk] = .verified
    let bytes = bytes(of: chunk)
    bytesVerified += bytes.upperBound - bytes.lowerBound
    while front < states.count, states[front] == .verified { front += 1 }
  }

  /// Records the number of local bytes from a chunk's start.
  mutating func recordBytes(_ count: Int64, of chunk: Int) {
    bytesKept += count - kept(of: chunk)
    kept[chunk] = count == 0 ? nil : count
  }

  /// Records that a fetched chunk turned out to be wrong.
  mutating func drop(_ chunk: Int) {
    if states[chunk] == .verified {
      let bytes = bytes(of: chunk)
      bytesVerified -= bytes.upperBound - bytes.lowerBound
    }
    states[chunk] = .missing
    recordBytes(0, of: chunk)
    scan = min(scan, chunk)
    front = min(front, chunk)
  }

  /// Records that a chunk was fetched completely and is wrong. Returns true if it may be fetched
  /// again.
  ///
  /// - Parameter isWhole: true if this answer had the whole chunk. Otherwise bytes from before may
  ///   be wrong, so the failure does not count once.
  mutating func failed(_ chunk: Int, isWhole: Bool) -> Bool {
    drop(chunk)
    if !isWhole, excused.insert(chunk).inserted { return true }
    failures[chunk, default: 0] += 1
    return failures[chunk, default: 0] < bounds.tries
  }
}

// Requests.
extension ChunkPlan {
  /// Returns the next range; `nil` if nothing is missing, or if other requests must end first.
  mutating func next() -> FetchRange? {
    guard active < (isProven && way == .parallel ? bounds.connections : 1) else { return nil }
    while scan < states.count, states[scan] != .missing { scan += 1 }
    guard scan < states.count else { return nil }
    active += 1
    requests += 1
    return isAskedWhole ? claimWhole(as: requests) : claimRange(from: scan, as: requests)
  }

  /// Records that ranges work, after a first answer: other requests may run beside it.
  mutating func rangesWork() { isProven = true }

  /// Records that the server answered a range with the whole file. Returns the request's new range,
  /// or `nil` if the request must end because others are under way.
  mutating func widen(_ range: FetchRange) -> FetchRange? {
    change(to: .single)
    guard active == 1 else { return nil }
    release(range)
    return claimWhole(as: range.id)
  }

  /// Changes the kind of requests. Returns true if it differs from the former one.
  @discardableResult
  mutating func change(to way: Way) -> Bool {
    guard way > self.way else { return false }
    self.way = way
    return true
  }

  /// Records the end of a request; its unfetched chunks may be requested again.
  mutating func ended(_ range: FetchRange) {
    active -= 1
    release(range)
  }

  /// True if the next request has no range: the server supports none, or a range gains nothing.
  private var isAskedWhole: Bool {
    if way >= .whole { return true }
    let isEmpty = bytesVerified == 0 && bytesKept == 0 && active == 1
    return isEmpty && (size <= bounds.wholeBytes || states.count == 1)
  }

  private mutating func claimWhole(as id: Int) -> FetchRange {
    for chunk in states.indices where states[chunk] == .missing {
      states[chunk] = .fetching(by: id)
      recordBytes(0, of: chunk)
    }
    return FetchRange(id: id, chunks: states.indices, bytes: 0..<size, hasRange: false)
  }

  private mutating func claimRange(from first: Int, as id: Int) -> FetchRange {
    let limit = rangeLimit
    var last = first
    states[first] = .fetching(by: id)
    // A partly fetched chunk continues in a separate request.
    while last + 1 < states.count, states[last + 1] == .missing, kept[last + 1] == nil,
      bytes(of: last + 1).upperBound - bytes(of: first).lowerBound <= limit
    {
      last += 1
      states[last] = .fetching(by: id)
    }
    let start = bytes(of: first).lowerBound + kept(of: first)
    return FetchRange(
      id: id, chunks: first..<last + 1, bytes: start..<bytes(of: last).upperBound,
      hasRange: true)
  }

  /// The length of a range: divides the rest between the connections, in ranges of at least a
  /// chunk.
  private var rangeLimit: Int64 {
    if way != .parallel { return size }
    let share = (size - bytesVerified - bytesKept) / Int64(bounds.connections)
    return max(chunkSize, min(share, bounds.rangeBytes))
  }

  private mutating func release(_ range: FetchRange) {
    for chunk in range.chunks where isWanted(chunk, by: range) {
      states[chunk] = .missing
      scan = min(scan, chunk)
    }
  }
}

/// One request's part of a file.
struct FetchRange: Equatable, Sendable {
  /// The number of the request in the plan, from 1.
  var id: Int
  /// The chunks of the request, except those already here.
  var chunks: Range<Int>
  /// The requested bytes: from inside the first chunk, if a part of it is here.
  var bytes: Range<Int64>
  /// True if the request names the range; otherwise it requests the whole file.
  var hasRange: Bool
}
