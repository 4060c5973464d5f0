import FerryProtocol

// Parts already on the device.
extension DownloadSession {
  /// Restores the parts from an earlier run or from other files.
  func restore() async throws(DownloadError) {
    let remains = try await file.open(bootID: surroundings.bootID())
    if checksChunks {
      try await restoreChunks(remains)
      try await reuseChunks()
    } else if size > 0 {
      try await restorePrefix(remains)
    }
    reused = plan.bytesVerified + plan.bytesKept
    moved()
  }

  /// Restores chunks. The map is trusted if the system has not restarted since. The hash decides
  /// after a restart, in a possibly finished file, and for a complete chunk outside of the map.
  private func restoreChunks(_ remains: PartialRemains) async throws(DownloadError) {
    for chunk in 0..<plan.chunkCount {
      let bytes = plan.bytes(of: chunk)
      let mark = remains.marks?[chunk] ?? 0
      let isMarkedWhole = mark == bytes.upperBound - bytes.lowerBound
      if !map[chunk], !isMarkedWhole, !remains.mayBeFinished {
        if mark > 0, bytes.lowerBound + mark <= remains.contentBytes {
          plan.recordBytes(mark, of: chunk)
        }
        continue
      }
      if map[chunk], isMarkedWhole, bytes.upperBound <= remains.contentBytes {
        plan.verified(chunk)
        continue
      }
      if Task.isCancelled { throw .cancelled }
      map[chunk] = accepts(try await file.digest(of: bytes), of: chunk)
      if map[chunk] {
        plan.verified(chunk)
        try await file.mark(chunk, bytes.upperBound - bytes.lowerBound)
      }
    }
  }

  /// Restores a part from the start. A part without a version cannot be continued.
  private func restorePrefix(_ remains: PartialRemains) async throws(DownloadError) {
    let there = remains.marks.map { $0[0] ?? 0 } ?? map.prefixBytes
    let bytes = map.validator == nil ? 0 : min(there, remains.contentBytes, size)
    let kept = layout.lasting(bytes, of: 0)
    let isWhole = kept == size
    if isWhole || remains.mayBeFinished && job.hash != nil {
      let whole = try await rehash(0..<size).finish()
      if accepts(whole.hash.bytes, of: 0) {
        facts = whole
        plan.verified(0)
        return try await file.mark(0, size)
      }
    }
    guard kept > 0, !isWhole else { return try await forgetPrefix() }
    plan.recordBytes(kept, of: 0)
    try await file.mark(0, kept)
  }

  private func reuseChunks() async throws(DownloadError) {
    for chunk in plan.missing {
      if Task.isCancelled { throw .cancelled }
      let bytes = plan.bytes(of: chunk)
      let length = bytes.upperBound - bytes.lowerBound
      let hash = job.chunks[chunk]
      guard let local = await job.reuse(hash), local.length == length else { continue }
      // Bytes overwritten by a failed copy no longer belong to the chunk.
      plan.recordBytes(0, of: chunk)
      try await file.mark(chunk, 0)
      if try await file.copy(local, to: bytes.lowerBound, expecting: hash) {
        try await file.mark(chunk, length)
        verified(chunk)
      }
    }
  }

  /// Returns the digest of a part of the file so far, to continue with.
  nonisolated func rehash(_ range: Range<Int64>) async throws(DownloadError) -> ContentDigest {
    var hash = digest()
    var position = range.lowerBound
    while position < range.upperBound {
      if Task.isCancelled { throw .cancelled }
      let bytes = try await file.read(position..<range.upperBound)
      if bytes.isEmpty { throw DownloadError(.file, "\(job.partialPath) was shortened") }
      hash.update(bytes)
      position += Int64(bytes.count)
    }
    return hash
  }

  /// Checks every chunk again after the whole file turned out to be wrong. Returns true if a chunk
  /// is wrong: fetching it again may help.
  func recheck() async throws(DownloadError) -> Bool {
    for chunk in 0..<plan.chunkCount {
      if Task.isCancelled { throw .cancelled }
      if accepts(try await file.digest(of: plan.bytes(of: chunk)), of: chunk) { continue }
      plan.drop(chunk)
      map[chunk] = false
      try await file.mark(chunk, 0)
    }
    if !plan.isComplete { try await record() }
    return !plan.isComplete
  }
}
