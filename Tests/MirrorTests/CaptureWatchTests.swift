import FerryTestSupport
import Testing

@testable import FerryMirror

/// The rule of looks and sleep, as a table of events and effects.
@Suite("The watch of captured writes", .hangLimit)
struct CaptureWatchTests {
  /// An awake watch right before it tries to sleep.
  private func tired(sleeps: Bool = true) -> CaptureWatch {
    var watch = CaptureWatch()
    #expect(watch.handle(.connected(sleeps: sleeps)) == [.look])
    for _ in 1..<CaptureWatch.looksMax {
      #expect(watch.handle(.looked(.nothing)) == [.wait(CaptureWatch.pause)])
      #expect(watch.handle(.due) == [.look])
    }
    return watch
  }

  private func asleep() -> CaptureWatch {
    var watch = tired()
    #expect(watch.handle(.looked(.nothing)) == [.lock])
    #expect(watch.handle(.locked(true)) == [.look])
    #expect(watch.handle(.looked(.nothing)) == [.wait(CaptureWatch.sleepPause)])
    #expect(watch.state == .asleep)
    return watch
  }

  @Test("it sleeps after looks without writes, with the lock, and after one more look")
  func sleeps() { _ = asleep() }

  @Test("a program that has shared the lock keeps it awake, with longer pauses")
  func shared() {
    var watch = tired()
    for _ in 0..<3 {
      #expect(watch.handle(.looked(.nothing)) == [.lock])
      #expect(watch.handle(.locked(false)) == [.wait(CaptureWatch.longPause)])
      #expect(watch.handle(.due) == [.look])
    }
    #expect(watch.state == .awake)
    // Its write comes.
    #expect(watch.handle(.looked(.new)) == [.wait(CaptureWatch.pause)])
    #expect(watch.handle(.due) == [.look])
    #expect(watch.handle(.looked(.nothing)) == [.wait(CaptureWatch.pause)])
  }

  @Test("a write of before the lock, found by the look after it, keeps it awake")
  func lastLook() {
    var watch = tired()
    #expect(watch.handle(.looked(.nothing)) == [.lock])
    #expect(watch.handle(.locked(true)) == [.look])
    #expect(watch.state == .fallingAsleep)
    #expect(watch.handle(.looked(.new)) == [.unlock, .wait(CaptureWatch.pause)])
    #expect(watch.state == .awake)
  }

  @Test(
    "a notification, another mirror of the process, and a late look end the sleep",
    arguments: [CaptureWatch.Event.notified, .changed])
  func wakes(_ event: CaptureWatch.Event) {
    var watch = asleep()
    #expect(watch.handle(event) == [.unlock, .look])
    #expect(watch.state == .awake)
    watch = asleep()
    #expect(watch.handle(.due) == [.look])
    #expect(watch.handle(.looked(.new)) == [.unlock, .wait(CaptureWatch.pause)])
  }

  @Test("a notification on the way during the last look ends the sleep")
  func notifiedMeanwhile() {
    var watch = tired()
    #expect(watch.handle(.looked(.nothing)) == [.lock])
    #expect(watch.handle(.locked(true)) == [.look])
    #expect(watch.handle(.notified) == [.unlock, .look])
    #expect(watch.state == .awake)
  }

  @Test("a new connection has no lock, and looks")
  func connects() {
    var watch = asleep()
    #expect(watch.handle(.connected(sleeps: true)) == [.look])
    #expect(watch.state == .awake)
  }

  @Test("it never sleeps if the server allows prepared transactions")
  func wakeful() {
    var watch = tired(sleeps: false)
    for _ in 0..<100 {
      #expect(watch.handle(.looked(.nothing)) == [.wait(CaptureWatch.longPause)])
      #expect(watch.handle(.due) == [.look])
    }
    #expect(watch.state == .awake)
  }

  @Test("writes that stay get longer pauses, and no sleep; new ones get short pauses again")
  func stuck() {
    var watch = CaptureWatch()
    _ = watch.handle(.connected(sleeps: true))
    for look in 1...100 {
      let pause = look < CaptureWatch.looksMax ? CaptureWatch.pause : CaptureWatch.longPause
      #expect(watch.handle(.looked(.same)) == [.wait(pause)])
      #expect(watch.handle(.due) == [.look])
    }
    #expect(watch.handle(.looked(.new)) == [.wait(CaptureWatch.pause)])
  }
}
