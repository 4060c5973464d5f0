import FerryPlatform
import FerrySQLite

/// Kept answers in two levels, on a separate thread, since disks block.
///
/// No call fails: an unreadable answer counts as absent, and an answer that cannot be written is
/// not kept. If the folder is unusable, the cache is in memory only.
package actor CacheStore {
  /// A kept answer, found by a search.
  package struct Found: Sendable, Equatable {
    /// The answer without the body.
    package var head: CachedHead
    /// The body, if it was requested.
    package var body: [UInt8]?
  }

  /// The number of uses per write.
  private static let usesMax = 32

  private let executor: any WorkExecutor
  private var folder: String?
  private let limits: CacheLimits
  private var memory: MemoryLevel
  private var disk: DiskLevel?
  private var uses: [Int64] = []

  package nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Creates a cache in `folder`, opened on first use; `nil` keeps everything in memory.
  package init(
    folder: String?, limits: CacheLimits,
    executor: any WorkExecutor = ThreadExecutor(name: "ferry-cache")
  ) {
    self.folder = folder
    self.limits = limits
    self.executor = executor
    memory = MemoryLevel(bytesMax: limits.memoryBytes, ageMax: limits.age.milliseconds)
  }

  /// Returns the answer selected by `choose` from those under a key, with the body if it is
  /// requested.
  package func find(
    _ key: CacheKey, now: Int64,
    choose: @Sendable ([CachedHead]) -> (head: CachedHead, needsBody: Bool)?
  ) -> Found? {
    let attempted = attempt(now: now) { disk -> Found? in
      guard let choice = choose(young(try disk.heads(of: key), now)) else { return nil }
      guard choice.needsBody else { return Found(head: choice.head, body: nil) }
      guard let body = try body(of: choice.head.id, in: disk, now: now) else { return nil }
      return Found(head: choice.head, body: body)
    }
    guard let found = attempted ?? nil else { return nil }
    uses.append(found.head.id)
    if uses.count >= Self.usesMax { attempt(now: now) { try recordUses($0) } }
    return found
  }

  /// Stores an answer in place of the one for the same requests; removes answers beyond the limits.
  package func store(_ body: [UInt8], as head: CachedHead, under key: CacheKey, now: Int64) {
    attempt(now: now) { disk in
      try recordUses(disk)
      let id = try disk.store(body, as: head, under: key)
      memory.store(body, of: id, now: now)
      try trim(disk, now: now)
    }
  }

  /// Stores and returns the answer made by `renew` from one of those under a key; `nil` if it makes
  /// none or the body is gone.
  package func renew(
    _ key: CacheKey, now: Int64, renew: @Sendable ([CachedHead]) -> CachedHead?
  ) -> Found? {
    let renewed = attempt(now: now) { disk -> CachedHead? in
      try disk.connection.transaction {
        guard let head = renew(young(try disk.heads(of: key), now)) else { return nil }
        try disk.update(head)
        return head
      }
    }
    guard let head = renewed ?? nil else { return nil }
    let attempted = attempt(now: now) { try body(of: head.id, in: $0, now: now) }
    guard let body = attempted ?? nil else { return nil }
    return Found(head: head, body: body)
  }

  /// Removes the answers selected by `choose` under a key.
  package func remove(
    _ key: CacheKey, now: Int64, choose: @Sendable ([CachedHead]) -> [CachedHead]
  ) {
    attempt(now: now) { disk in
      let ids = choose(try disk.heads(of: key)).map(\.id)
      for id in ids { memory.remove(id) }
      try disk.remove(ids)
    }
  }

  /// Removes all answers of these endpoints.
  package func remove(endpoints: [String], now: Int64) {
    attempt(now: now) { disk in
      for endpoint in endpoints { try disk.remove(endpoint: endpoint) }
    }
  }

  /// Removes all answers of a partition.
  package func remove(partition: String, now: Int64) {
    memory.removeAll()
    attempt(now: now) { try $0.remove(partition: partition) }
  }

  /// Removes all answers.
  package func removeAll(now: Int64) {
    memory.removeAll()
    attempt(now: now) { try $0.removeAll() }
  }

  /// Removes answers over the limits of age or size.
  package func trim(now: Int64) { attempt(now: now) { try trim($0, now: now) } }

  /// Returns the bytes on disk.
  package func bytes(now: Int64) -> Int64 { attempt(now: now) { try $0.bytes() } ?? 0 }

  /// Returns the bytes of any file; `nil` if it cannot be read or has more than `limit`.
  package func contents(ofFile path: String, limit: Int) -> [UInt8]? {
    BodyFiles.contents(path, limit: limit)
  }

  // MARK: The two levels

  private func body(of id: Int64, in disk: DiskLevel, now: Int64) throws -> [UInt8]? {
    if let body = memory.body(of: id, now: now) { return body }
    guard let body = try disk.body(of: id) else { return nil }
    memory.store(body, of: id, now: now)
    return body
  }

  private func young(_ heads: [CachedHead], _ now: Int64) -> [CachedHead] {
    let ageMax = limits.age.milliseconds
    return heads.filter { -ageMax...ageMax ~= now - $0.received }
  }

  private func recordUses(_ disk: DiskLevel) throws {
    defer { uses = [] }
    try disk.touch(uses)
  }

  private func trim(_ disk: DiskLevel, now: Int64) throws {
    let bytesMax = folder == nil ? limits.memoryBytes : limits.diskBytes
    try disk.trim(bytesMax: bytesMax, ageMax: limits.age.milliseconds, now: now)
  }

  /// Runs `body` on the disk level; `nil` if it fails. Discards a damaged index and retries once.
  @discardableResult
  private func attempt<T>(now: Int64, _ body: (DiskLevel) throws -> T) -> T? {
    for _ in 1...2 {
      do {
        return try body(try opened(now: now))
      } catch let error as SQLiteError where error.isDamage {
        try? disk?.discard()
        close()
      } catch {
        return nil
      }
    }
    return nil
  }

  private func opened(now: Int64) throws -> DiskLevel {
    if let disk {
      if disk.isCurrent { return disk }
      close()
    }
    do {
      disk = try DiskLevel.open(folder: folder, now: now)
    } catch {
      let isBusy = (error as? SQLiteError)?.isBusy == true
      guard folder != nil, !isBusy else { throw error }
      folder = nil
      disk = try DiskLevel.open(folder: nil, now: now)
    }
    guard let disk else { throw SQLiteError(code: 26, message: "the cache is closed") }
    return disk
  }

  /// Ids belong to one index, so none of them may be used with another.
  private func close() {
    disk = nil
    memory.removeAll()
    uses = []
  }
}
