/// Which parts of a file are still to be fetched, and in which requests.
///
/// A pure machine: whoever fetches asks for the next range, and tells what became of it. A file of
/// which only the whole is known is one chunk here, which grows from its start.
struct ChunkPlan {
  /// How the server is asked. It only ever changes to a later case, so that asking differently
  /// comes to an end.
  enum Way: Int, Comparable, Sendable {
    /// Ranges over several connections.
    case parallel
    /// One range at a time: the server answered one with the whole file.
    case single
    /// The whole file without a range: the server's ranges are not what they should be.
    case whole
    /// The whole file, encoded for the transfer: the server encodes unasked, so that it is asked
    /// for encodings that the transport decodes.
    case decoded

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// How much at once.
  struct Bounds: Equatable, Sendable {
    /// Requests at a time.
    var connections = 4
    /// Bytes of a range.
    var rangeBytes: Int64 = 32 << 20
    /// A file up to this size, in bytes, is asked for without a range.
    var wholeBytes: Int64 = 8 << 20
    /// How often a chunk's content may be wrong before the file is given up.
    var tries = 3
  }

  /// A chunk under way belongs to one request: nobody else writes it, or gives it back.
  private enum State: Equatable { case missing, fetching(by: Int), verified }

  /// Bytes of the file.
  let size: Int64
  /// Bytes of each chunk but the last.
  let chunkSize: Int64
  let bounds: Bounds
  private(set) var way = Way.parallel
  /// Bytes of all chunks that are there and right.
  private(set) var bytesVerified: Int64 = 0
  /// Bytes of chunks that are there in part.
  private(set) var bytesKept: Int64 = 0
  /// Requests under way.
  private(set) var active = 0
  /// Requests that were handed out so far.
  private var requests = 0
  /// Chunks from the start that are all there and right.
  private(set) var front = 0

  private var states: [State]
  private var kept: [Int: Int64] = [:]
  private var failures: [Int: Int] = [:]
  private var excused: Set<Int> = []
  /// No chunk before this one is missing.
  private var scan = 0
  /// Whether a first answer has shown that ranges work.
  private var isProven = false

  /// A plan in which nothing is there.
  init(size: Int64, chunkSize: Int64, bounds: Bounds = Bounds()) {
    precondition(size >= 0 && chunkSize > 0, "a file has 0 bytes or more, a chunk one or more")
    self.size = size
    self.chunkSize = chunkSize
    self.bounds = bounds
    states = Array(
      repeating: .missing, count: Int(size / chunkSize) + (size % chunkSize > 0 ? 1 : 0))
  }

  var chunkCount: Int { states.count }

  /// Whether every chunk is there and right.
  var isComplete: Bool { bytesVerified == size }

  /// Bytes from the start that are all there and right.
  var frontBytes: Int64 { min(Int64(front) * chunkSize, size) }

  /// Where a chunk lies in the file.
  func bytes(of chunk: Int) -> Range<Int64> {
    let start = Int64(chunk) * chunkSize
    return start..<min(start + chunkSize, size)
  }

  func isVerified(_ chunk: Int) -> Bool { states[chunk] == .verified }

  /// Whether a request is to bring this chunk: not where it is there, or another request's.
  func isWanted(_ chunk: Int, by range: FetchRange) -> Bool {
    states[chunk] == .fetching(by: range.id)
  }

  /// Bytes from a chunk's start that are there, unproven.
  func kept(of chunk: Int) -> Int64 { kept[chunk] ?? 0 }

  /// Chunks that are neither there nor under way, in order.
  var missing: [Int] { states.indices.filter { states[$0] == .missing } }
}

// What is there.
extension ChunkPlan {
  /// A chunk is there and right.
  mutating func verified(_ chunk: Int) {
    guard states[chunk] != .verified else { return }
    keep(0, of: chunk)
    states[chunk] = .verified
    let bytes = bytes(of: chunk)
    bytesVerified += bytes.upperBound - bytes.lowerBound
    while front < states.count, states[front] == .verified { front += 1 }
  }

  /// So many bytes from a chunk's start are there.
  mutating func keep(_ count: Int64, of chunk: Int) {
    bytesKept += count - kept(of: chunk)
    kept[chunk] = count == 0 ? nil : count
  }

  /// A chunk that was there turned out to be wrong.
  mutating func drop(_ chunk: Int) {
    if states[chunk] == .verified {
      let bytes = bytes(of: chunk)
      bytesVerified -= bytes.upperBound - bytes.lowerBound
    }
    states[chunk] = .missing
    keep(0, of: chunk)
    scan = min(scan, chunk)
    front = min(front, chunk)
  }

  /// A chunk was fetched to its end and is wrong; answers whether it may be fetched again.
  ///
  /// - Parameter isWhole: whether all of it came with this answer. What was kept from before may be
  ///   to blame otherwise, so that it does not count once.
  mutating func failed(_ chunk: Int, isWhole: Bool) -> Bool {
    drop(chunk)
    if !isWhole, excused.insert(chunk).inserted { return true }
    failures[chunk, default: 0] += 1
    return failures[chunk, default: 0] < bounds.tries
  }
}

// Requests.
extension ChunkPlan {
  /// What to ask for next; nil when nothing is missing, or others have to end first.
  mutating func next() -> FetchRange? {
    guard active < (isProven && way == .parallel ? bounds.connections : 1) else { return nil }
    while scan < states.count, states[scan] != .missing { scan += 1 }
    guard scan < states.count else { return nil }
    active += 1
    requests += 1
    return isAskedWhole ? claimWhole(as: requests) : claimRange(from: scan, as: requests)
  }

  /// A first answer has shown that ranges work: others may go beside.
  mutating func rangesWork() { isProven = true }

  /// The server answered a range with the whole file: what the request is about now, or nil when it
  /// is to end, since others are under way.
  mutating func widen(_ range: FetchRange) -> FetchRange? {
    change(to: .single)
    guard active == 1 else { return nil }
    release(range)
    return claimWhole(as: range.id)
  }

  /// Asks differently from now on; answers whether that is any different.
  @discardableResult
  mutating func change(to way: Way) -> Bool {
    guard way > self.way else { return false }
    self.way = way
    return true
  }

  /// A request has ended; what it did not bring may be asked for again.
  mutating func ended(_ range: FetchRange) {
    active -= 1
    release(range)
  }

  /// Whether the next request has no range: the server can do no other, or nothing would be gained.
  private var isAskedWhole: Bool {
    if way >= .whole { return true }
    let isEmpty = bytesVerified == 0 && bytesKept == 0 && active == 1
    return isEmpty && (size <= bounds.wholeBytes || states.count == 1)
  }

  private mutating func claimWhole(as id: Int) -> FetchRange {
    for chunk in states.indices where states[chunk] == .missing {
      states[chunk] = .fetching(by: id)
      keep(0, of: chunk)
    }
    return FetchRange(id: id, chunks: states.indices, bytes: 0..<size, hasRange: false)
  }

  private mutating func claimRange(from first: Int, as id: Int) -> FetchRange {
    let limit = rangeLimit
    var last = first
    states[first] = .fetching(by: id)
    // What was begun is gone on with in a request of its own.
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

  /// The rest is shared out between the connections, in ranges of at least a chunk.
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
  /// Which request of the plan it is, from 1.
  var id: Int
  /// The chunks that it brings, those that are there already aside.
  var chunks: Range<Int>
  /// The bytes that it asks for: from inside the first chunk, where a part of it is there.
  var bytes: Range<Int64>
  /// Whether it says so: the whole file is asked for without a range.
  var hasRange: Bool
}
