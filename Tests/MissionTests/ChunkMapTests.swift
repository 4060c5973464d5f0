import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("Chunk maps", .hangLimit)
struct ChunkMapTests {
  @Test("a map of any length is read back unchanged")
  func roundTrip() throws {
    for count in [0, 1, 7, 8, 9, 1_000] {
      var map = ChunkMap(chunkCount: count)
      for index in stride(from: 0, to: count, by: 3) { map[index] = true }
      map.validator = count == 7 ? nil : "\"a–b\""
      map.prefixBytes = Int64(count) << 33
      #expect(ChunkMap(encoded: map.encoded(), chunkCount: count) == map)
      #expect(map.present == (count + 2) / 3)
      #expect(map.missing == (0..<count).filter { $0 % 3 != 0 })
    }
  }

  @Test("a blob of another file, cut off or with extra bits, is refused")
  func refused() {
    var map = ChunkMap(chunkCount: 9)
    map[8] = true
    map.validator = "\"1\""
    let bytes = map.encoded()
    #expect(ChunkMap(encoded: bytes, chunkCount: 10) == nil)
    for length in bytes.indices {
      #expect(ChunkMap(encoded: Array(bytes[..<length]), chunkCount: 9) == nil)
    }
    var beyond = bytes
    beyond[beyond.count - 1] |= 2
    #expect(ChunkMap(encoded: beyond, chunkCount: 9) == nil)
    var other = bytes
    other[0] = 2
    #expect(ChunkMap(encoded: other, chunkCount: 9) == nil)
  }
}
