import FerryProtocol

/// A builder of one page of a pull list from rows in sequence order, with the device's notices in
/// their places between them.
struct PageBuilder {
  var changes: JSONWriter
  /// Changes in the page.
  var count = 0
  /// Places of the order covered by the page; some of their rows contain nothing for the reader.
  private var placeCount = 0
  private(set) var last: SequenceNumber
  private let applied: SequenceNumber
  private var notices: NoticeFeed
  let request: PullRequest

  /// Bytes reserved for an answer's head and end.
  private static let headBytes = 1_024

  /// - Parameter changeBytes: An estimate of the bytes of all changes; `nil` if there is none.
  init(_ request: PullRequest, notices: NoticeFeed = NoticeFeed(), changeBytes: Int? = nil) {
    self.request = request
    self.notices = notices
    // All pages of one list contain the changes after the same point. So a column edited before the
    // list began is not lost when its record moves to a later page.
    applied = request.cursor?.applied ?? 0
    last = request.cursor?.received ?? 0
    // Most pages are small, and large ones grow in a few steps.
    let expected = changeBytes ?? min(request.limit * 256, 64 << 10)
    changes = JSONWriter(capacity: min(request.byteLimit, expected) + Self.headBytes)
  }

  /// True if another row may be added. There is always room for one.
  var hasRoom: Bool {
    placeCount == 0
      || placeCount < request.limit && changes.count + notices.byteCount < request.byteLimit
  }

  /// Adds the notices before the next row. Returns `true` if the row may be added; if not, the page
  /// is closed.
  mutating func admits(_ sequence: SequenceNumber) -> Bool {
    addNotices(before: sequence)
    return hasRoom && sequence <= notices.reach
  }

  private mutating func addNotices(before end: SequenceNumber) {
    while hasRoom, let place = notices.place, place < end {
      notices.advance()
      last = place
      placeCount += 1
    }
  }

  /// Adds the missing parts of one record, with the notices at its place. Copies the values unread
  /// if the device needs all of them. Returns `true` if the page contains any part of the record.
  @discardableResult
  mutating func add(
    sequence: SequenceNumber, table: UnsafeRawBufferPointer, record: StoredRecordName,
    state: UnsafeRawBufferPointer, wholeBelow: SequenceNumber
  ) throws(MalformedMessage) -> Bool {
    last = sequence
    placeCount += 1
    if notices.place == sequence { notices.advance() }
    if applied < wholeBelow {
      count += 1
      changes.element()
      try changes.change(
        sequence: sequence, table: table.bindMemory(to: UInt8.self), record: record, state: state)
      return true
    }
    let stored = try RecordState(stored: state, limits: .stored)
    guard let part = stored.since(applied) else { return false }
    count += 1
    changes.element()
    let key = RecordKey(
      table: Name(String(decoding: table, as: UTF8.self)), record: record.name)
    changes.change(Change(sequence: sequence, key: key, state: part))
    return true
  }

  /// Returns the encoded page.
  ///
  /// - Parameters:
  ///   - newest: the last changed record's sequence, from the same snapshot as all else.
  ///   - deviceName: the name of the asking device.
  mutating func finish(
    _ space: SpaceSnapshot, newest: SequenceNumber, appliedTail: OperationID?,
    deviceName: DeviceName? = nil, now: Int64
  ) -> [UInt8] {
    // There may be notices behind the last change, for example after the record was pruned.
    if last >= newest { addNotices(before: .max) }
    let more = last < max(newest, notices.newest)
    let (epoch, head) = (space.epoch, space.head)
    let cursor =
      more
      ? Cursor(
        epoch: epoch, applied: applied, received: last, anchor: space.anchor,
        began: applied == 0 ? began(space) : nil)
      : Cursor(epoch: epoch, applied: head, anchor: space.anchor)
    return whole(
      PageHead(
        epoch: epoch, head: head, cursor: cursor, more: more, appliedTail: appliedTail,
        serverTime: now, count: count, deviceName: deviceName, nameChanges: space.nameChanges),
      notices: notices.finish())
  }

  /// Returns the page with the head, and moves the changes into it: they are many, and a copy would
  /// take new memory.
  mutating func whole(_ head: PageHead, notices: [UInt8] = []) -> [UInt8] {
    var start = JSONWriter(capacity: Self.headBytes + notices.count)
    start.beginPage(head, notices: notices)
    changes.prepend(start.finish())
    changes.endPage()
    return changes.bytes
  }

  /// Returns the head when the first page of this list from the start was read; `nil` if the cursor
  /// does not contain it.
  private func began(_ space: SpaceSnapshot) -> SequenceNumber? {
    guard let cursor = request.cursor, cursor.received > 0 else { return space.head }
    return cursor.began
  }

  /// Returns the reason if a request cannot be answered from this space, or `nil` if it can.
  ///
  /// - Parameter owner: The principal of the request's device; `nil` if no packet of it was taken.
  static func fault(
    in request: PullRequest, _ space: SpaceSnapshot, owner: Principal? = nil
  ) -> Problem? {
    if let fault = Problem.upgradeRequired(
      from: request.protocolVersion, to: space.minimumProtocol)
    {
      return fault
    }
    // Only a device's owner may see the notices and the progress of the device.
    if let device = request.device, let owner, !owner.leaves(deviceTo: request.principal) {
      return .deviceTaken(device)
    }
    guard let cursor = request.cursor else { return nil }
    // A device notified of lost history uploads it again; a device notified of its age does not. So
    // this check comes first.
    let history = KnownHistory(
      epoch: space.epoch, head: space.head, retentionHorizon: space.retentionHorizon,
      timelineEnd: space.timelineEnd)
    if let problem = history.fault(of: cursor, anchored: space.anchored) { return problem }
    guard isKept(cursor, above: space.retentionHorizon) else {
      return Problem(
        .cursorExpired,
        "the cursor is at \(cursor.received), but the history begins at "
          + "\(space.retentionHorizon)")
    }
    return nil
  }

  /// Returns `true` if all missing changes of a device with such a cursor are there. Changes after
  /// the received point are complete from the retention horizon on. A list from the start lacks
  /// nothing either if the head was at the horizon or past it when the list began. Records deleted
  /// below the horizon were dead already.
  private static func isKept(_ cursor: Cursor, above retentionHorizon: SequenceNumber) -> Bool {
    if cursor.received == 0 || cursor.received >= retentionHorizon { return true }
    return cursor.applied == 0 && (cursor.began ?? 0) >= retentionHorizon
  }
}

/// A space as one pull finds it.
struct SpaceSnapshot {
  let epoch: Epoch
  let head: SequenceNumber
  /// The operation at `head`.
  let newest: OperationID?
  /// The history hash at `head`.
  var historyHash: UInt64 = HistoryHash.empty
  /// The timeline of the history; `nil` before the first one.
  var timeline: Timeline?
  /// The place of the anchor's operation in the history; `nil` if it is not there, or there is no
  /// anchor.
  let anchored: HistoryPlace?
  /// The end of the anchor's timeline; see ``KnownHistory/timelineEnd``.
  var timelineEnd: SequenceNumber?
  /// Tombstones up to here may be gone, and operations before it.
  let retentionHorizon: SequenceNumber
  /// The oldest protocol admitted by the space's schema.
  var minimumProtocol = 1
  /// The number of name changes of the space's devices.
  var nameChanges: SequenceNumber = 0

  /// Looks up the end of the timeline of a cursor's anchor, if needed.
  mutating func findEnd(
    of cursor: Cursor?, find: (Timeline) throws -> SequenceNumber?
  ) rethrows {
    if let timeline = cursor?.timeline(before: retentionHorizon) {
      timelineEnd = try find(timeline)
    }
  }

  /// The anchor of a cursor issued now.
  var anchor: Cursor.Anchor? {
    newest.map {
      Cursor.Anchor(head: head, operation: $0, historyHash: historyHash, timeline: timeline)
    }
  }
}
