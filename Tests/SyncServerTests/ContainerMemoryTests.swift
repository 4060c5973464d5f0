import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("The memory of the container", .hangLimit)
struct ContainerMemoryTests {
  private static let machine = 8 << 30

  private func limit(_ files: [String: String]) -> Int {
    ContainerMemory.limit(read: { files[$0] }, machine: Self.machine)
  }

  @Test("the limit of a container with control groups of version 2")
  func version2() {
    #expect(
      limit([
        "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "1073741824\n",
      ]) == 1 << 30)
  }

  @Test("the lowest limit of a group and of those above it")
  func ancestors() {
    var files = [
      "/proc/self/cgroup": "0::/system.slice/ferryd.service\n",
      "/sys/fs/cgroup/system.slice/ferryd.service/memory.max": "max\n",
      "/sys/fs/cgroup/system.slice/memory.max": "2147483648\n",
    ]
    #expect(limit(files) == 2 << 30)
    files["/sys/fs/cgroup/system.slice/ferryd.service/memory.max"] = "536870912\n"
    #expect(limit(files) == 512 << 20)
  }

  @Test("the limit of a container with control groups of version 1")
  func version1() {
    // The path is the host's; inside the container, the group is the root.
    let lines = "11:cpu,cpuacct:/docker/x\n7:memory:/docker/x\n0::/docker/x\n"
    #expect(
      limit([
        "/proc/self/cgroup": lines, "/sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n",
      ]) == 1 << 30)
    #expect(
      limit([
        "/proc/self/cgroup": lines,
        "/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "268435456\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
      ]) == 256 << 20)
  }

  @Test(
    "without a limit, it is the machine's memory",
    arguments: [
      [:], ["/proc/self/cgroup": ""], ["/proc/self/cgroup": "nonsense\n::\n"],
      ["/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.max": "max\n"],
      ["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "0\n"],
    ])
  func none(files: [String: String]) {
    #expect(limit(files) == Self.machine)
  }

  @Test("the budget is a quarter of it, and enough for the largest record")
  func budget() {
    let files = ["/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "1073741824\n"]
    #expect(ContainerMemory.standardBudget(read: { files[$0] }, machine: 1 << 40) == 256 << 20)
    #expect(ContainerMemory.standardBudget(read: { _ in nil }, machine: 1 << 20) == 64 << 20)
    #expect(ContainerMemory.limit() > 64 << 20)
  }
}
