import FerryCommandLine
import FerryTestSupport
import Synchronization
import Testing

@Suite("Progress", .hangLimit)
struct ProgressBarTests {
  /// A clock moved only by a test.
  private final class HandClock: Sendable {
    private let instant = Mutex(ContinuousClock.now)
    var now: ContinuousClock.Instant { instant.withLock { $0 } }
    func move(by duration: Duration) { instant.withLock { $0 += duration } }
  }

  private static func items(
    _ completed: Int64, of total: Int64?, rate: Double? = nil, elapsed: Duration = .zero
  ) -> ProgressState {
    ProgressState(
      label: "import", unit: .items("records"), completed: completed, total: total,
      elapsed: elapsed, rate: rate)
  }

  @Test(
    "a state is drawn into the available width, and the least important parts are omitted",
    arguments: [
      (
        items(5_000, of: 10_000, rate: 2_500), 79,
        "import  ███████████▌░░░░░░░░░░░   50%  5,000/10,000 records  2,500/s  0:02 left"
      ),
      (
        items(5_000, of: 10_000, rate: 2_500), 64,
        "import  █████████▌░░░░░░░░░   50%  5,000/10,000 records  2,500/s"
      ),
      (items(5_000, of: 10_000, rate: 2_500), 46, "import  █████░░░░░   50%  5,000/10,000 records"),
      (items(5_000, of: 10_000, rate: 2_500), 24, "import  █████░░░░░   50%"),
      (items(5_000, of: 10_000, rate: 2_500), 12, "import   50%"),
      (items(5_000, of: 10_000, rate: 2_500), 6, "impor…"),
      (
        items(10_000, of: 10_000, rate: 2_500), 60,
        "import  ██████████████  100%  10,000/10,000 records  2,500/s"
      ),
      (items(0, of: 0), 40, "import  █████████████  100%  0/0 records"),
      (items(9, of: 3), 40, "import  █████████████  100%  9/3 records"),
      (
        items(1_234, of: nil, rate: 10, elapsed: .milliseconds(61_200)), 60,
        "import  ⠹  1,234 records  10/s  1:02"
      ),
      (
        ProgressState(
          label: "a\u{1B}b", unit: .bytes, completed: 1_536, total: 4 << 20, rate: 1024), 70,
        #"a\u{1B}b  ░░░░░░░░░░░░    0%  1.5 KiB/4.0 MiB  1.0 KiB/s  1:08:15 left"#
      ),
    ])
  func renders(state: ProgressState, width: Int, line: String) {
    #expect(ProgressBar.render(state, width: width, with: .unicode) == line)
    #expect(line.displayWidth <= width)
  }

  @Test("nothing is written if standard error is not a terminal")
  func silent() {
    let collected = Collected()
    let bar = ProgressBar(
      "x", unit: .bytes, terminal: Terminal(), output: collected.output)
    bar.advance(by: 10)
    bar.finish(.leave)
    #expect(collected.all == [])
  }

  @Test("the line is drawn at most once an interval, and finished by leaving or clearing it")
  func throttled() {
    let (collected, clock) = (Collected(), HandClock())
    let bar = ProgressBar(
      "x", unit: .items("rows"), total: 200, terminal: Terminal(isErrorTerminal: true, width: 60),
      output: collected.output, now: { clock.now })
    clock.move(by: .seconds(1))
    bar.advance(by: 50)
    for _ in 0..<49 {
      clock.move(by: .milliseconds(1))
      bar.advance()
    }
    #expect(collected.all.count == 1)
    #expect(collected.text.contains("25%  50/200 rows  50/s  0:03 left\u{1B}[K"))
    clock.move(by: .milliseconds(51))
    bar.advance()
    #expect(collected.all.count == 2)
    bar.hide()
    #expect(collected.all.last == "\r\u{1B}[K")
    clock.move(by: .milliseconds(900))
    bar.update(completed: 200)
    bar.finish(.leave)
    #expect(collected.all.last?.hasSuffix("100%  200/200 rows  100/s\u{1B}[K\n") == true)
    let count = collected.all.count
    bar.advance()
    bar.finish()
    #expect(collected.all.count == count)
  }

  @Test("another part of the work starts at 0, with a rate of its own")
  func parts() {
    let (collected, clock) = (Collected(), HandClock())
    let bar = ProgressBar(
      "sync", unit: .items("rows"), terminal: Terminal(isErrorTerminal: true, width: 70),
      output: collected.output, now: { clock.now })
    clock.move(by: .seconds(1))
    bar.update("pulling", completed: 100, total: 100)
    #expect(collected.all.last?.contains("pulling  ") == true)
    clock.move(by: .milliseconds(1))
    bar.update("applying", completed: 20, total: 100)
    #expect(collected.all.last?.contains("applying  ") == true)
    clock.move(by: .seconds(1))
    bar.update("applying", completed: 50, total: 100)
    #expect(collected.all.last?.contains("50%  50/100 rows  30/s  0:02 left") == true)
  }

  @Test("the rate is the average at first, and follows the current rate later")
  func rate() {
    let (collected, clock) = (Collected(), HandClock())
    let bar = ProgressBar(
      "x", unit: .items("rows"), terminal: Terminal(isErrorTerminal: true),
      output: collected.output, now: { clock.now })
    clock.move(by: .microseconds(1))
    bar.advance(by: 100)
    #expect(collected.all.last?.contains("100 rows  0:01") == true)
    clock.move(by: .seconds(1))
    bar.advance(by: 100)
    #expect(collected.all.last?.contains("200 rows  199/s  0:02") == true)
    clock.move(by: .seconds(1))
    bar.advance(by: 0)
    #expect(collected.all.last?.contains("99/s") == true)
    clock.move(by: .seconds(60))
    bar.advance(by: 60_000)
    #expect(collected.all.last?.contains("999/s") == true)
  }

  @Test("the awaited subject is shown after a while, until the work continues")
  func waiting() {
    let (collected, clock) = (Collected(), HandClock())
    let bar = ProgressBar(
      "sync", unit: .items("rows"), terminal: Terminal(isErrorTerminal: true),
      output: collected.output, now: { clock.now })
    clock.move(by: .seconds(2))
    bar.wait(for: "the server")
    #expect(collected.all == [])
    clock.move(by: .seconds(3))
    bar.wait(for: "the server")
    #expect(collected.all.last?.contains("sync: waiting for the server, 0:05") == true)
    bar.advance(by: 7)
    #expect(collected.all.last?.contains("waiting") == false)
    bar.wait(for: "the server")
    #expect(collected.all.last?.contains("waiting") == false)
    clock.move(by: .seconds(4))
    bar.wait(for: "the server")
    #expect(collected.all.last?.contains("waiting for the server, 0:04  ") == true)
    bar.finish()
    let count = collected.all.count
    bar.wait(for: "the server", after: .zero)
    #expect(collected.all.count == count)
  }

  @Test("clearing removes the line, and does nothing if none was drawn")
  func cleared() {
    let collected = Collected()
    let terminal = Terminal(isErrorTerminal: true)
    ProgressBar("x", unit: .bytes, terminal: terminal, output: collected.output).finish()
    #expect(collected.all == [])
    let bar = ProgressBar("x", unit: .bytes, terminal: terminal, output: collected.output)
    bar.advance()
    bar.finish()
    #expect(collected.all.last == "\r\u{1B}[K")
  }

  @Test("several tasks can advance one bar, and nothing is lost")
  func concurrent() async {
    let collected = Collected()
    let bar = ProgressBar(
      "x", unit: .items("rows"), total: 8_000,
      terminal: Terminal(isErrorTerminal: true), output: collected.output)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask { for _ in 0..<1_000 { bar.advance() } }
      }
    }
    bar.finish(.leave)
    #expect(collected.all.last?.contains("8,000/8,000 rows") == true)
  }
}
