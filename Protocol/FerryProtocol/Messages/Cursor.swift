import FerryPlatform

/// The progress of a device, which is opaque to clients: they keep it and send it again (SPEC.md
/// §5).
public struct Cursor: Hashable, Sendable, CustomStringConvertible {
  /// An operation and the place in the space's order. A server restored from a backup has another
  /// operation in this place, or none.
  public struct Anchor: Hashable, Sendable {
    /// The space's newest sequence when the anchor was issued.
    public let head: SequenceNumber
    /// The operation at this sequence.
    public let operation: OperationID
    /// The history hash after it. After another upload, an operation may come to its old place
    /// behind other operations than before. `nil` if only the place matters: a cursor does not
    /// contain such an anchor.
    public let historyHash: UInt64?
    /// The timeline of the history when the anchor was issued. `nil` if the server keeps no
    /// timelines, or the history has none yet.
    public let timeline: Timeline?

    /// Creates an anchor from the given parts. A timeline is kept only beside a history hash.
    public init(
      head: SequenceNumber, operation: OperationID, historyHash: UInt64? = nil,
      timeline: Timeline? = nil
    ) {
      self.head = head
      self.operation = operation
      self.historyHash = historyHash
      self.timeline = historyHash == nil ? nil : timeline
    }
  }

  /// The epoch of the history.
  public let epoch: Epoch
  /// Everything up to here is applied.
  public let applied: SequenceNumber
  /// Everything up to here has been received; past `applied` while a pull list of several
  /// pages is under way.
  public let received: SequenceNumber
  /// The newest point of the history reported to the device. By it, the server recognises its
  /// history; `nil` if there is none yet.
  public let anchor: Anchor?
  /// Within a list from the start: the head when the first page was read.
  public let began: SequenceNumber?

  /// Creates a cursor at a checkpoint, or within a pull list. `began` is kept only beside an
  /// anchor.
  public init(
    epoch: Epoch, applied: SequenceNumber, received: SequenceNumber? = nil, anchor: Anchor? = nil,
    began: SequenceNumber? = nil
  ) {
    self.epoch = epoch
    self.applied = applied
    self.received = received ?? applied
    self.anchor = anchor
    self.began = anchor?.historyHash == nil ? nil : began
  }

  /// Parses the wire form.
  public init?(_ text: String) {
    let parts = text.parts(at: ".")
    guard [3, 6, 7, 8].contains(parts.count), let epoch = Epoch(parts[0]),
      let applied = Self.place(parts[1]), let received = Self.place(parts[2]),
      received >= applied
    else { return nil }
    var anchor: Anchor?
    var began: SequenceNumber?
    // The last part is a timeline if it has sixteen digits, or the place of the list's beginning.
    let hasTimeline = parts.count > 6 && (parts.count > 7 || parts[6].utf8.count == 16)
    if parts.count > (hasTimeline ? 7 : 6) {
      guard let head = Self.place(parts[parts.count - 1]), applied == 0 else { return nil }
      began = head
    }
    if parts.count > 3 {
      guard let head = Self.place(parts[3]), head >= received, let id = UniqueID(String(parts[4])),
        let historyHash = HistoryHash.parse(parts[5])
      else { return nil }
      var timeline: Timeline?
      if hasTimeline {
        timeline = Timeline(parts[6])
        if timeline == nil { return nil }
      }
      anchor = Anchor(
        head: head, operation: OperationID(id), historyHash: historyHash, timeline: timeline)
    }
    self.init(epoch: epoch, applied: applied, received: received, anchor: anchor, began: began)
  }

  private static func place(_ text: Substring) -> SequenceNumber? {
    guard let place = Int64(text), 0...Limits.sequenceMax ~= place else { return nil }
    return place
  }

  public var description: String {
    let place = "\(epoch).\(applied).\(received)"
    guard let anchor, let historyHash = anchor.historyHash else { return place }
    let known = "\(place).\(anchor.head).\(anchor.operation).\(HistoryHash.text(historyHash))"
    let whole = anchor.timeline.map { "\(known).\($0)" } ?? known
    return began.map { "\(whole).\($0)" } ?? whole
  }
}
