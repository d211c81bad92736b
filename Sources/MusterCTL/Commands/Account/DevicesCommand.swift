import ArgumentParser
import MusterKit

struct DevicesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices", abstract: "List the devices that get your notifications, add a webhook, remove devices.",
    discussion: """
      Phones add themselves. `musterctl preferences` says which notifications are sent.

        musterctl devices
        musterctl devices add https://hooks.example.com/muster --name "Home server"
        musterctl devices remove 4902ab
      """,
    subcommands: [ListDevices.self, AddDevice.self, RemoveDevice.self], defaultSubcommand: ListDevices.self)
}

struct ListDevices: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the devices of your open sessions, newest first.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.pages { try await account.client.devices.list(limit: $0, cursor: $1) }
    try console.show(reply, orNote: "No device gets your notifications.") { devices in
      let ids = ShortID(devices.map(\.id))
      return Table(
        [.init("ID"), .init("PLATFORM"), .init("NAME", .flexible), .init("SINCE", .optional), .init("")],
        rows: devices.map {
          [
            .init(ids.of($0.id), .faint), .init($0.platform.rawValue), .init($0.name ?? "-"),
            .init(TimeText.here.day($0.createdAt), .faint), .init($0.current ? "this session" : "", .green),
          ]
        })
    }
  }
}

struct AddDevice: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Have your notifications sent to a webhook, until this session ends.",
    discussion: """
      Prints the secret that signs them, once. Adding the same URL again changes its name, and keeps its secret unless \
      --new-secret is given.

        musterctl devices add https://hooks.example.com/muster --name "Home server"
      """)

  @Argument(help: "The webhook: an https URL.")
  var url: String

  @Option(help: ArgumentHelp("A name for your list of devices.", valueName: "text"))
  var name: String?

  @Flag(help: "Replace the secret of a webhook that was added before.")
  var newSecret = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let registration = DeviceRegistration(
      platform: .webhook, token: url, name: name, rotateSecret: newSecret ? true : nil)
    let reply = try await account.responses.reply { try await account.client.devices.register(registration) }
    try console.show(reply) { device in
      console.lines(
        of: [("Device", "\(device.name ?? url), \(device.id)"), ("Secret", device.secret ?? "as before")])
    }
  }
}

struct RemoveDevice: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a device. It gets no more notifications.",
    discussion: "Asks first. Without a terminal, --yes is required.")

  @Argument(
    help: ArgumentHelp("The device: its name, its id, or the beginning or end of the id.", valueName: "device"),
    completion: .devices)
  var device: String

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let all = try await account.responses.pages {
      try await account.client.devices.list(limit: $0, cursor: $1)
    }.value
    let found = PartialID.candidates(for: device, in: all, id: \.id) { $0.name }
    guard let only = found.first, found.count == 1 else {
      throw Failure.refused(
        "\(found.isEmpty ? "There is no device" : "There are several devices") \"\(device)\". `musterctl devices` lists "
          + "them with their ids.",
        candidates: found.map { .members("id", "name", "platform", of: $0) })
    }
    let name = "\(only.platform) “\(only.name ?? "-")”"
    try Prompt.confirm("Remove \(name.safeLine)?", isConfirmed: yes, refusal: "Nothing was removed.")
    let reply = try await account.responses.reply { try await account.client.devices.remove(only.id) }
    try console.show(reply) { "Removed \(name)." }
  }
}
