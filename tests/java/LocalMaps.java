import java.io.IOException;
import java.net.InetSocketAddress;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.LocalJobRunner;
import org.apache.hadoop.mapreduce.protocol.ClientProtocol;
import org.apache.hadoop.mapreduce.protocol.ClientProtocolProvider;

/** Hadoop's local runner for {@code mapreduce.framework.name=local-maps}: its own provider sets the number of maps to 1. */
public final class LocalMaps extends ClientProtocolProvider {
    @Override
    public ClientProtocol create(Configuration settings) throws IOException {
        return "local-maps".equals(settings.get("mapreduce.framework.name")) ? new LocalJobRunner(settings) : null;
    }

    @Override
    public ClientProtocol create(InetSocketAddress address, Configuration settings) {
        return null;
    }

    @Override
    public void close(ClientProtocol client) {}
}
