/** Trino's own server: its launcher is not published by itself. */
public class Trino {
    public static void main(String[] arguments) {
        new io.trino.server.Server().start("435");
    }
}
