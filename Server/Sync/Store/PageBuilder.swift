import FerryProtocol

/// Builds one page of a pull list from rows in sequence order, and the device's notices in their
/// places between them.
struct PageBuilder {
  var changes: JSONWriter
  /// Changes in the page.
  var count = 0
  /// Places of the order that the page holds; some of their rows say nothing to a reader.
  private var placeCount = 0
  var first = true
  private(set) var last: SequenceNumber
  private let applied: SequenceNumber
  private var notices: NoticeFeed
  let request: PullRequest

  init(_ request: PullRequest, notices: NoticeFeed = NoticeFeed()) {
    self.request = request
    self.notices = notices
    // All pages of one list show what changed after the same point, so that a column edited
    // before the list began is not lost when its record moves to a later page.
    applied = request.cursor?.applied ?? 0
    last = request.cursor?.received ?? 0
    // Most pages are small, and large ones grow in a few steps.
    changes = JSONWriter(capacity: min(request.byteLimit, request.limit * 256, 64 << 10) + 1024)
  }

  /// Whether another row may be added. There is always room for one.
  var hasRoom: Bool {
    placeCount == 0
      || placeCount < request.limit && changes.count + notices.byteCount < request.byteLimit
  }

  /// Takes the notices that come before the next row. Answers whether that row may be added; where
  /// not, the page is closed.
  mutating func admits(_ sequence: SequenceNumber) -> Bool {
    takeNotices(before: sequence)
    return hasRoom && sequence <= notices.reach
  }

  private mutating func takeNotices(before end: SequenceNumber) {
    while hasRoom, let place = notices.place, place < end {
      notices.take()
      last = place
      placeCount += 1
    }
  }

  /// Adds one record as far as the device lacks it, with the notices of its place. The state is
  /// copied unread where the device needs all of it. Answers whether the page says anything of it.
  @discardableResult
  mutating func add(
    sequence: SequenceNumber, table: UnsafeRawBufferPointer, record: UnsafeRawBufferPointer,
    state: UnsafeRawBufferPointer, wholeBelow: SequenceNumber
  ) throws(MalformedMessage) -> Bool {
    last = sequence
    placeCount += 1
    if notices.place == sequence { notices.take() }
    if applied < wholeBelow {
      count += 1
      changes.separate(&first)
      changes.change(
        sequence: sequence, table: table.bindMemory(to: UInt8.self),
        record: record.bindMemory(to: UInt8.self), state: state)
      return true
    }
    let stored = try RecordState(decoding: state, limits: .stored)
    guard let part = stored.since(applied) else { return false }
    count += 1
    changes.separate(&first)
    let key = RecordKey(
      table: String(decoding: table, as: UTF8.self), record: String(decoding: record, as: UTF8.self)
    )
    changes.change(Change(sequence: sequence, key: key, state: part))
    return true
  }

  /// The page as it travels.
  ///
  /// - Parameter newest: the last changed record's sequence, from the same snapshot as all else.
  consuming func finish(
    _ space: SpaceSnapshot, newest: SequenceNumber, appliedTail: OperationID?, now: Int64
  ) -> [UInt8] {
    // Behind the last change there may be notices still, as where its record was pruned.
    if last >= newest { takeNotices(before: .max) }
    let more = last < max(newest, notices.newest)
    let (epoch, head) = (space.epoch, space.head)
    let cursor =
      more
      ? Cursor(
        epoch: epoch, applied: applied, received: last, anchor: space.anchor,
        began: applied == 0 ? began(space) : nil)
      : Cursor(epoch: epoch, applied: head, anchor: space.anchor)
    var page = JSONWriter(capacity: changes.count + 512)
    page.beginPage(
      PageHead(
        epoch: epoch, head: head, cursor: cursor, more: more, appliedTail: appliedTail,
        serverTime: now, count: count), notices: notices.finish())
    page.raw(changes.finish())
    page.endPage()
    return page.finish()
  }

  /// The head when the first page of this list from the start was read; `nil` where the cursor does
  /// not tell.
  private func began(_ space: SpaceSnapshot) -> SequenceNumber? {
    guard let cursor = request.cursor, cursor.received > 0 else { return space.head }
    return cursor.began
  }

  /// Why a request cannot be answered from this space, or `nil` when it can.
  ///
  /// - Parameter owner: Of the request's device; `nil` if nobody has used it.
  static func fault(
    in request: PullRequest, _ space: SpaceSnapshot, owner: Principal? = nil
  ) -> Problem? {
    if let fault = Problem.upgradeRequired(
      from: request.protocolVersion, to: space.minimumProtocol)
    {
      return fault
    }
    // What it was told, and how far it came, are its owner's business.
    if let device = request.device, let owner, !owner.leaves(deviceTo: request.principal) {
      return .deviceTaken(device)
    }
    guard let cursor = request.cursor else { return nil }
    // A device that is told of what was lost gives it back; one that is told of its age does not: so
    // this comes first.
    let history = KnownHistory(
      epoch: space.epoch, head: space.head, floor: space.floor, timelineEnd: space.timelineEnd)
    if let problem = history.fault(of: cursor, anchored: space.anchored) { return problem }
    guard isKept(cursor, above: space.floor) || PlantedFault.expiredCursorServed.isPlanted else {
      return Problem(
        .cursorExpired,
        "the cursor is at \(cursor.received); history is kept from \(space.floor) on")
    }
    return nil
  }

  /// Whether everything is there that such a cursor's device lacks. What comes after the received
  /// point is complete from the floor on. A list from the start, under way since all up to the
  /// floor was there, lacks nothing either: what was deleted below the floor was dead already.
  private static func isKept(_ cursor: Cursor, above floor: SequenceNumber) -> Bool {
    if cursor.received == 0 || cursor.received >= floor { return true }
    return cursor.applied == 0 && (cursor.began ?? 0) >= floor
  }
}

/// A space as one pull finds it.
struct SpaceSnapshot {
  let epoch: Epoch
  let head: SequenceNumber
  /// The operation at `head`.
  let newest: OperationID?
  /// The history's running print at `head`.
  var print: UInt64 = HistoryPrint.empty
  /// The timeline that the history is on; `nil` where none was begun yet.
  var timeline: Timeline?
  /// Where the operation of the cursor's anchor is in the history; `nil` where it is not, or
  /// there is no anchor.
  let anchored: HistoryPlace?
  /// Where the timeline of that anchor ended; see ``KnownHistory/timelineEnd``.
  var timelineEnd: SequenceNumber?
  /// Tombstones up to here may be gone, and operations before it.
  let floor: SequenceNumber
  /// The oldest protocol that the space's schema admits.
  var minimumProtocol = 1

  /// Looks for where the timeline of a cursor's anchor ended, where that tells anything.
  mutating func noteEnd(
    of cursor: Cursor?, find: (Timeline) throws -> SequenceNumber?
  ) rethrows {
    if let timeline = cursor?.timeline(before: floor) { timelineEnd = try find(timeline) }
  }

  /// What a cursor given now is known again by.
  var anchor: Cursor.Anchor? {
    newest.map { Cursor.Anchor(head: head, operation: $0, print: print, timeline: timeline) }
  }
}
