import FerryTestSupport
import Testing

@testable import FerryProtocol

/// The forms in which servers keep states and identifiers of records.
@Suite(.hangLimit)
struct StoredStateTests {
  private static func stamp(_ time: UInt64, _ device: UInt64) -> Stamp {
    Stamp(
      time: HybridTimestamp(rawValue: time), device: DeviceID(UniqueID(high: device, low: ~device)))
  }

  /// A state with each kind of write, large numbers and values of all types.
  private static let state = RecordState(
    inserted: SequencedStamp(stamp: stamp(1 << 63, 1), sequence: 300, origin: 3),
    deleted: SequencedStamp(stamp: stamp(7, .max), sequence: 127),
    columns: [
      ColumnState(name: "a", value: .blob([0, 255]), stamp: stamp(1 << 63, 1), sequence: 128),
      ColumnState(
        name: "b", value: .text("\u{1F6A2}\0"), stamp: stamp(.max, 2), sequence: .max,
        origin: 1 << 40, shared: 1 << 62),
      ColumnState(name: "c", value: .null, stamp: stamp(1 << 63, 1), sequence: 128),
      ColumnState(name: "d", value: .real(-0.0), stamp: stamp(8, 2), sequence: 1),
    ])

  @Test("a state with all kinds of writes is read back")
  func roundTrip() throws {
    try Self.state.expectStored()
    try RecordState().expectStored()
    try RecordState(deleted: Self.state.deleted).expectStored()
  }

  @Test("the state of one insert takes 25 bytes besides its columns and its sequence")
  func size() {
    let stamp = Self.stamp(1, 1)
    let state = RecordState(
      inserted: SequencedStamp(stamp: stamp, sequence: 16_384),
      columns: [ColumnState(name: "a", value: .integer(1), stamp: stamp, sequence: 16_384)])
    #expect(state.stored().count == 25 + 3 + #"{"a":1}"#.utf8.count)
  }

  @Test("reading a damaged state never reads past its end")
  func damage() {
    let bytes = Self.state.stored()
    for count in 1..<bytes.count {
      // Each state is in separate memory, so a read past the end is noticed.
      #expect(!Array(bytes[..<count]).readAsState(), "\(count) bytes")
    }
    for index in bytes.indices {
      for bit in 0..<8 {
        var damaged = bytes
        damaged[index] ^= 1 << UInt8(bit)
        _ = damaged.readAsState()
      }
    }
    #expect(throws: MalformedMessage.self) {
      try Array(bytes.dropLast()).withUnsafeBytes {
        try RecordState(stored: $0, limits: .standard)
      }
    }
    // A length that overflows, and an integer without an end.
    let head = [UInt8](repeating: 0, count: 26)
    for rest: [UInt8] in [
      [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F], .init(repeating: 0xFF, count: 12),
    ] {
      #expect(throws: MalformedMessage.self) {
        try (head + rest).withUnsafeBytes { try RecordState(stored: $0, limits: .standard) }
      }
    }
  }

  @Test(
    "identifiers are read back as they were, and sort by their bytes within each kind",
    arguments: [
      "", "home", "0199c82c-0000-7000-8000-0000000000a1", "0199C82C-0000-7000-8000-0000000000A1",
      "0199c82c-0000-7000-8000-0000000000a", "ffffffff-ffff-ffff-ffff-ffffffffffff",
      "0199c82c00007000800000000000000000a1", "sixteen bytes ok", "seventeen bytes o\u{fe}",
      "00000000-0000-0000-0000-000000000000", "{199c82c-0000-7000-8000-0000000000a1",
    ])
  func names(_ text: String) {
    let name = Name(text)
    let stored = StoredRecordName(name)
    #expect(stored.name == name)
    let bytes = stored.withBytes { Array($0) }
    #expect(bytes.withUnsafeBytes { StoredRecordName(bytes: $0) }.name == name)
    let isUUID = UniqueID(text)?.description == text
    #expect(bytes.count == (isUUID ? 17 : text.utf8.count))
    #expect((bytes.first == 0xFF) == isUUID)
    var json = JSONWriter()
    json.string(stored)
    var other = JSONWriter()
    other.string(name)
    #expect(json.finish() == other.finish())
  }
}

extension RecordState {
  /// Expects that the stored form is read back and is sent as the JSON of the state.
  func expectStored() throws {
    let bytes = stored()
    let read = try bytes.withUnsafeBytes { try RecordState(stored: $0, limits: .standard) }
    #expect(read == self)
    var json = JSONWriter()
    try bytes.withUnsafeBytes { try json.state(stored: $0) }
    #expect(json.finish() == encoded())
  }
}

extension [UInt8] {
  /// Reads the bytes as a state in both ways. Returns whether they are one.
  fileprivate func readAsState() -> Bool {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
    defer { memory.deallocate() }
    memory.copyBytes(from: self)
    let bytes = UnsafeRawBufferPointer(memory)
    let state = try? RecordState(stored: bytes, limits: .standard)
    var json = JSONWriter()
    let isSent = (try? json.state(stored: bytes)) != nil
    // Each readable state can be sent.
    #expect(state == nil || isSent)
    return state != nil
  }
}
