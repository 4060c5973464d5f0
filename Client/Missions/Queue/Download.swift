import FerryProtocol
import Foundation
import Observation
import Synchronization

/// One file, fetched by a ``DownloadQueue`` to a path: observable, and independent of missions.
///
/// After another process opens the queue, it continues the download with the same `userInfo`.
///
/// ```swift
/// let film = Download(
///   "https://example.org/film.mp4", to: "/data/film.mp4", userInfo: ["lesson": 7])
/// try await queue.add(film)
/// for await status in film.updates() { print(status.state, status.fraction ?? 0) }
/// let file = try await film.finished()
/// ```
public final class Download: Sendable, Identifiable {
  public let id: DownloadID
  /// The request with the file as the answer.
  public let request: ContentRequest
  /// The absolute path of the complete file. Until then the fetched part is at ``partialPath``.
  public let path: String
  /// The required size of the file in bytes; `nil` accepts each size up to ``sizeMax``.
  public let size: Int64?
  /// The required SHA-256 of the file; `nil` accepts each content.
  public let hash: ContentHash?
  /// The largest accepted size of a file of unknown size, in bytes.
  public let sizeMax: Int64
  /// Downloads to finish first.
  public let after: [DownloadID]
  let info: Result<[UInt8]?, DownloadError>

  private struct State {
    var status = DownloadStatus()
    var priority: Int
    var file: DownloadedFile?
    var rate = RateMeter()
    var listeners: [Int: AsyncStream<DownloadStatus>.Continuation] = [:]
    var listenerCount = 0
    var isClosed = false
    weak var queue: DownloadQueue?
  }

  private let guarded: Mutex<State>
  private let registrar = ObservationRegistrar()

  /// Creates a download; a queue's `add` begins it.
  ///
  /// - Parameters:
  ///   - path: the file's path; a present file is replaced when the new one is complete. The folder
  ///     must exist.
  ///   - userInfo: any value of the app, stored as JSON; see ``userInfo(as:)``.
  ///   - priority: downloads with a higher one come first.
  ///   - after: downloads to finish first.
  public init(
    _ request: ContentRequest, to path: String, id: DownloadID = .random(),
    userInfo: (any Encodable & Sendable)? = nil, size: Int64? = nil, hash: ContentHash? = nil,
    sizeMax: Int64 = .max, priority: Int = 0, after: [DownloadID] = []
  ) {
    self.id = id
    self.request = request
    self.path = URL(fileURLWithPath: path).standardizedFileURL.path
    self.size = size
    self.hash = hash
    self.sizeMax = sizeMax
    self.after = after
    info = Self.encoded(userInfo)
    guarded = Mutex(State(priority: priority))
    guarded.withLock { $0.status.progress.bytesTotal = size }
  }

  /// Creates a download of an address.
  public convenience init(
    _ url: String, to path: String, id: DownloadID = .random(),
    userInfo: (any Encodable & Sendable)? = nil, size: Int64? = nil, hash: ContentHash? = nil,
    sizeMax: Int64 = .max, priority: Int = 0, after: [DownloadID] = []
  ) {
    self.init(
      ContentRequest(url), to: path, id: id, userInfo: userInfo, size: size, hash: hash,
      sizeMax: sizeMax, priority: priority, after: after)
  }

  /// Creates a download of an earlier process.
  init(_ row: DownloadRow) {
    (id, request, path) = (row.id, row.request, row.path)
    (size, hash, sizeMax, after) = (row.size, row.hash, row.sizeMax, row.after)
    info = .success(row.userInfo)
    var state = State(priority: row.priority)
    state.status.state = row.state
    state.status.reason = row.reason
    state.status.progress = DownloadProgress(
      bytesDone: row.bytesDone, bytesTotal: row.bytesTotal ?? row.size, bytesFetched: 0)
    state.file = row.file
    guarded = Mutex(state)
  }

  private static func encoded(
    _ userInfo: (any Encodable & Sendable)?
  ) -> Result<[UInt8]?, DownloadError> {
    guard let userInfo else { return .success(nil) }
    do { return .success(Array(try JSONEncoder().encode(userInfo))) } catch {
      return .failure(DownloadError(.file, "the userInfo cannot be stored: \(error)"))
    }
  }

  // MARK: Looking

  /// The address of the file.
  public var url: String { request.url }

  /// The path of the fetched part.
  public var partialPath: String { "\(path).ferry-part" }

  /// The present status; observable with the Observation framework.
  public var status: DownloadStatus {
    registrar.access(self, keyPath: \.status)
    return guarded.withLock { $0.status }
  }

  /// The present state.
  public var state: DownloadState { status.state }

  /// The priority: downloads with a higher one come first.
  public var priority: Int { guarded.withLock { $0.priority } }

  /// Returns the app's value given to the initialiser, perhaps in an earlier process; `nil` if
  /// there was none.
  ///
  /// - Throws: ``DownloadError/Kind/file`` if the value is not of this type.
  public func userInfo<Value: Decodable>(
    as type: Value.Type = Value.self
  ) throws(DownloadError) -> Value? {
    guard let bytes = try info.get() else { return nil }
    do { return try JSONDecoder().decode(type, from: Data(bytes)) } catch {
      throw DownloadError(.file, "the userInfo is not a \(type): \(error)")
    }
  }

  /// Returns a stream of the status now and after each change. It ends when the download is done,
  /// failed or cancelled, or the queue closes. A slow listener gets only the newest status.
  public func updates() -> AsyncStream<DownloadStatus> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: DownloadStatus.self, bufferingPolicy: .bufferingNewest(1))
    guarded.withLock { state in
      continuation.yield(state.status)
      if state.isClosed || state.status.state.isFinal { return continuation.finish() }
      state.listenerCount += 1
      let number = state.listenerCount
      state.listeners[number] = continuation
      continuation.onTermination = { [weak self] _ in
        _ = self?.guarded.withLock { $0.listeners.removeValue(forKey: number) }
      }
    }
    return stream
  }

  /// Waits until the download has ended, and returns the file. A paused download is waited for.
  ///
  /// - Throws: the reason of a failure; ``DownloadError/Kind/cancelled`` if it or this task was
  ///   cancelled, or the queue was closed.
  @discardableResult
  public func finished() async throws(DownloadError) -> DownloadedFile {
    for await _ in updates() {}
    let (status, file) = guarded.withLock { ($0.status, $0.file) }
    switch status.state {
    case .done:
      return file ?? DownloadedFile(path: path, size: status.progress.bytesDone, hash: hash)
    case .failed: throw status.reason ?? DownloadError(.file, "the download failed")
    case .cancelled: throw DownloadError(.cancelled, "the download was cancelled")
    case .ready, .downloading, .paused:
      throw DownloadError(.cancelled, "the wait ended before the download")
    }
  }

  // MARK: Changing

  /// Pauses the download, and keeps the fetched part. Has no effect on an ended one.
  ///
  /// - Throws: ``DownloadError/Kind/busy`` if the download is in no open queue, as the calls below.
  public func pause() async throws(DownloadError) { try await queue()?.pause(self) }

  /// Continues a paused download, or tries a failed one again.
  public func resume() async throws(DownloadError) { try await queue()?.resume(self) }

  /// Cancels the download, and removes the fetched part.
  public func cancel() async throws(DownloadError) { try await queue()?.cancel(self) }

  /// Changes the priority.
  public func setPriority(_ priority: Int) async throws(DownloadError) {
    try await queue()?.setPriority(priority, of: self)
  }

  /// Returns the queue; `nil` if the download ended and was removed from it.
  private func queue() throws(DownloadError) -> DownloadQueue? {
    let (queue, state) = guarded.withLock { ($0.queue, $0.status.state) }
    guard queue != nil || state.isFinal else {
      throw DownloadError(.busy, "the download is in no open queue", isTransient: false)
    }
    return queue
  }

  // MARK: The queue

  /// Attaches the download to a queue; `false` if it is in one already.
  func join(_ queue: DownloadQueue) -> Bool {
    guarded.withLock { state in
      guard state.queue == nil else { return false }
      state.queue = queue
      return true
    }
  }

  /// Detaches the download from the queue, and ends all listeners.
  func leave() {
    let listeners = guarded.withLock { state in
      state.queue = nil
      state.isClosed = true
      defer { state.listeners = [:] }
      return state.listeners.sorted { $0.key < $1.key }.map(\.value)
    }
    for listener in listeners { listener.finish() }
  }

  /// The complete file; `nil` before the end.
  var file: DownloadedFile? { guarded.withLock { $0.file } }

  func set(priority: Int) { guarded.withLock { $0.priority = priority } }

  func set(file: DownloadedFile) { guarded.withLock { $0.file = file } }

  func set(_ newState: DownloadState, _ reason: DownloadError?) {
    change { state in
      state.status.state = newState
      state.status.reason = reason
      state.status.bytesPerSecond = nil
      state.rate = RateMeter()
      if newState == .cancelled || newState == .failed { state.status.progress.bytesDone = 0 }
    }
  }

  /// Shows the progress. A cancelled download whose work still ends has none, unless it is complete.
  func set(_ progress: DownloadProgress, at now: Duration, isComplete: Bool = false) {
    change { state in
      if state.status.state == .cancelled, !isComplete { return }
      state.status.progress = progress
      state.rate.mark(progress.bytesFetched, at: now)
      state.status.bytesPerSecond = state.rate.rate(progress.bytesFetched, at: now)
    }
  }

  private func change(_ body: (inout State) -> Void) {
    let (status, listeners) = registrar.withMutation(of: self, keyPath: \.status) {
      guarded.withLock { state in
        body(&state)
        defer { if state.status.state.isFinal { state.listeners = [:] } }
        return (state.status, state.listeners.sorted { $0.key < $1.key }.map(\.value))
      }
    }
    for listener in listeners {
      listener.yield(status)
      if status.state.isFinal { listener.finish() }
    }
  }
}

extension Download: Observable {}
