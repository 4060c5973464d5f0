import FerryCommandLine
import FerryTestSupport
import Testing

@Suite("Amounts on the command line", .hangLimit)
struct QuantityTests {
  @Test(
    "a time is a number with a unit, or several of them",
    arguments: [
      ("0", .zero), ("0s", .zero), ("500ms", .milliseconds(500)), ("30s", .seconds(30)),
      ("5m", .seconds(300)), ("2h", .seconds(7200)), ("1d", .seconds(86_400)),
      ("1h30m", .seconds(5400)), ("1.5s", .milliseconds(1500)), ("0.1ms", .microseconds(100)),
      ("10us", .microseconds(10)), ("10µs", .microseconds(10)), ("7ns", .nanoseconds(7)),
      ("0.000000001s", .nanoseconds(1)), ("106751d", .seconds(106_751 * 86_400)),
    ] as [(String, Duration)])
  func durations(text: String, expected: Duration) {
    #expect(Duration(commandLine: text) == expected)
  }

  @Test(
    "any other text is not a time",
    arguments: [
      "", "30", "s", "-5s", "+5s", "5 s", "5S", "1.s", ".5s", "1e3s", "5x", "5s3", "106752d",
      "99999999999999999999s", "٣s", "1h30", "0.0000000001s",
    ])
  func notDurations(text: String) {
    #expect(Duration(commandLine: text) == nil)
  }

  @Test(
    "a size is in bytes, or in decimal or binary units",
    arguments: [
      ("0", 0), ("65536", 65_536), ("512B", 512), ("1KB", 1000), ("1KiB", 1024), ("1kib", 1024),
      ("4MiB", 4 << 20), ("10MB", 10_000_000), ("1.5GiB", 3 << 29), ("1.1GB", 1_100_000_000),
      ("2TiB", 2 << 40), ("9223372036854775807", Int.max),
    ])
  func sizes(text: String, bytes: Int) {
    #expect(ByteSize(commandLine: text)?.bytes == bytes)
  }

  @Test(
    "any other text is not a size",
    arguments: ["", "4M", "MiB", "-1", "1 MiB", "9223372036854775808", "8388608TiB"])
  func notSizes(text: String) {
    #expect(ByteSize(commandLine: text) == nil)
  }

  @Test("a count of one uses the singular")
  func counted() {
    #expect(
      [0, 1, 2, 12_345].map { $0.counted("file") } == [
        "0 files", "1 file", "2 files", "12,345 files",
      ]
    )
    #expect(
      1.counted("entry", "entries") == "1 entry" && 2.counted("entry", "entries") == "2 entries")
  }

  @Test("amounts are shown in a readable form")
  func shown() {
    #expect(
      [0, 1023, 1024, 1536, 5 << 20, Int.max].map { ByteSize(bytes: $0).text }
        == ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 MiB", "7.9 EiB"])
    #expect([0, 999, 1000, -1_234_567].map(\.grouped) == ["0", "999", "1,000", "-1,234,567"])
    #expect(Int64.min.grouped == "-9,223,372,036,854,775,808")
    #expect(
      [.zero, .milliseconds(4500), .seconds(760), .seconds(10_801)].map(\Duration.clockText)
        == ["0:00", "0:05", "12:40", "3:00:01"])
  }
}
