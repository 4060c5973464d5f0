import FerryProtocol

/// The changes of a batch to the use of a space by the principals' accounts; pure.
///
/// An account is charged for the growth caused by operations of its principals, and has the credit
/// for bytes removed by them. So no account is charged for another one's data, and a space's total
/// bounds all.
struct UsageLedger {
  private let before: [Principal: Usage]
  private let totalBefore: Usage
  private let quotas: Quotas
  private let now: Int64
  private(set) var usage: [Principal: Usage]
  private(set) var total: Usage
  /// As they were when the run under way began.
  private var runStart: (own: Usage, total: Usage) = (Usage(), Usage())

  init(_ context: IngestContext) {
    (before, totalBefore) = (context.usage, context.total)
    (usage, total) = (context.usage, context.total)
    (quotas, now) = (context.quotas, context.now)
  }

  /// The changed rows, for the store to write.
  var changed: [Principal: Usage] { usage.filter { before[$0.key] != $0.value } }

  /// The space's total, if it changed.
  var changedTotal: Usage? { total == totalBefore ? nil : total }

  // MARK: Devices and buffered packets

  /// Counts device identifiers with a first or another owner, and their buffered packets.
  mutating func move(_ owners: [DeviceID: Principal], in context: IngestContext) {
    for (device, principal) in owners {
      let owner = principal.account
      let buffered = context.buffered.filter { $0.key.device == device }
      let bytes = buffered.reduce(0) { $0 + Int64($1.byteCount) }
      if let former = context.owners[device]?.account {
        usage[former, default: Usage()].add(devices: -1)
        usage[former, default: Usage()].add(packets: -Int64(buffered.count), bytes: -bytes)
        usage[owner, default: Usage()].add(packets: Int64(buffered.count), bytes: bytes)
      } else {
        total.add(devices: 1)
      }
      usage[owner, default: Usage()].add(devices: 1)
    }
  }

  mutating func buffer(_ byteCount: Int, of owner: Principal) {
    usage[owner.account, default: Usage()].add(packets: 1, bytes: Int64(byteCount))
    total.add(packets: 1, bytes: Int64(byteCount))
  }

  mutating func unbuffer(_ byteCount: Int, of owner: Principal) {
    usage[owner.account, default: Usage()].add(packets: -1, bytes: -Int64(byteCount))
    total.add(packets: -1, bytes: -Int64(byteCount))
  }

  // MARK: Runs

  mutating func beginRun(of owner: Principal) {
    runStart = ((usage[owner.account] ?? Usage()).today(now), total.today(now))
  }

  /// Counts the changes of one packet to records, and the bytes written to the history.
  mutating func charge(_ owner: Principal, bytes: Int64, records: Int64, written: Int64) {
    if bytes == 0 && records == 0 && written == 0 { return }
    var own = (usage[owner.account] ?? Usage()).today(now)
    own.add(bytes: bytes, records: records)
    own.written += written
    usage[owner.account] = own
    total = total.today(now)
    total.add(bytes: bytes, records: records)
    total.written += written
  }

  /// Returns the reason if the run under way takes too much; `nil` otherwise. A run that frees room
  /// or takes none is never too much.
  func excess(of owner: Principal) -> Problem? {
    let own = usage[owner.account] ?? Usage()
    if own.written > runStart.own.written, let problem = writeExcess { return problem }
    return Self.excess(
      "your records in this space", own, since: runStart.own, bytes: quotas.principalBytes,
      records: quotas.principalRecords)
      ?? Self.excess(
        "all records of this space", total, since: runStart.total, bytes: quotas.spaceBytes,
        records: quotas.spaceRecords)
  }

  /// The reason for no more writes today. If all principals together wrote too much, those with few
  /// writes go on.
  private var writeExcess: Problem? {
    let (own, all) = (runStart.own.written, runStart.total.written)
    if own >= quotas.dailyBytes {
      return Problem(
        .writeQuota,
        "you wrote \(own) bytes to this space today; the limit of one user is "
          + "\(quotas.dailyBytes). Send the rest tomorrow (UTC)")
    }
    guard all >= quotas.spaceDailyBytes, own >= quotas.spaceDailyBytes / Quotas.sharesOfSpace
    else { return nil }
    return Problem(
      .writeQuota,
      "all users wrote \(all) bytes to this space today; the limit is "
        + "\(quotas.spaceDailyBytes). Send the rest tomorrow (UTC)")
  }

  private static func excess(
    _ what: String, _ usage: Usage, since start: Usage, bytes: Int64, records: Int64
  ) -> Problem? {
    let advice = "Delete some, or ask the server's administrator for a larger quota"
    if usage.bytes > bytes, usage.bytes > start.bytes {
      return Problem(
        .storageQuota,
        "\(what) would have \(usage.bytes) bytes; \(bytes) are allowed. \(advice)")
    }
    if usage.records > records, usage.records > start.records {
      return Problem(
        .storageQuota, "\(what) would be \(usage.records); \(records) are allowed. \(advice)")
    }
    return nil
  }
}
