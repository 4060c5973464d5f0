import FerrySQLite

extension DiskLevel {
  /// The most answers removed by one transaction, so others do not wait long for the lock.
  static let sliceMax = 64

  /// Removes these answers.
  func remove(_ ids: [Int64]) throws {
    guard !ids.isEmpty else { return }
    try connection.transaction { try delete(ids) }
    try collectGarbage()
  }

  /// Removes all answers of an endpoint, of all partitions: a change of it affects them all.
  func remove(endpoint: String) throws { try removeAll("endpoint = ?", endpoint) }

  /// Removes all answers of a partition.
  func remove(partition: String) throws { try removeAll("partition = ?", partition) }

  /// Removes all answers.
  func removeAll() throws { try removeAll("?1 IS NOT NULL", "") }

  /// Removes answers older than `ageMax` milliseconds. If more than `bytesMax` bytes remain,
  /// removes the least recently used answers, down to nine tenths.
  func trim(bytesMax: Int, ageMax: Int64, now: Int64) throws {
    try removeSlices { try expired(ageMax: ageMax, now: now) }
    if try bytes() > bytesMax {
      try removeSlices { try unused(over: Int64(bytesMax) * 9 / 10) }
    }
    try collectGarbage()
  }

  /// Returns the bytes of all answers.
  func bytes() throws -> Int64 { try connection.integer("SELECT bytes FROM state") }

  private func removeAll(_ condition: String, _ value: String) throws {
    try removeSlices {
      try connection.rows(
        "SELECT id FROM entries WHERE \(condition) LIMIT \(Self.sliceMax)", value
      ) { $0.int64(0) }
    }
    try collectGarbage()
  }

  /// Removes the answers returned by `next`, in one transaction each, until it returns none.
  private func removeSlices(_ next: () throws -> [Int64]) throws {
    // The first check needs no lock: usually there are none.
    while try !next().isEmpty {
      try connection.transaction { try delete(try next()) }
    }
  }

  private func delete(_ ids: [Int64]) throws {
    let statement = try connection.statement("DELETE FROM entries WHERE id = ?")
    for id in ids { try statement.run(id) }
  }

  /// Returns expired answers. An answer from the far future came under a wrong clock, and expires,
  /// too.
  private func expired(ageMax: Int64, now: Int64) throws -> [Int64] {
    try connection.rows(
      "SELECT id FROM entries WHERE received < ?1 OR received > ?2 LIMIT \(Self.sliceMax)",
      now - ageMax, now + ageMax
    ) { $0.int64(0) }
  }

  private func unused(over bytesMax: Int64) throws -> [Int64] {
    var excess = try bytes() - bytesMax
    guard excess > 0 else { return [] }
    var ids: [Int64] = []
    try connection.forEach("SELECT id, size FROM entries ORDER BY used LIMIT \(Self.sliceMax)") {
      row in
      guard excess > 0 else { return }
      ids.append(row.int64(0))
      excess -= row.int64(1)
    }
    return ids
  }

  /// Removes files after the loss of their last answer.
  ///
  /// It runs after the answer's removal is committed, and under the lock again. So neither a crash
  /// nor an answer with the same body leaves a row without a file.
  private func collectGarbage() throws {
    while try connection.integer("SELECT EXISTS (SELECT 1 FROM garbage)") == 1 {
      try connection.transaction {
        let listed = try connection.rows("SELECT hash FROM garbage LIMIT \(Self.sliceMax)") {
          $0.blob(0)
        }
        for hash in listed {
          if try !isNeeded(hash) { files?.remove(hash: hash) }
          try connection.run("DELETE FROM garbage WHERE hash = ?", hash)
        }
      }
    }
  }
}
